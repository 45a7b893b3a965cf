"""Certificates that nobody trusts unless told to."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class Pair(NamedTuple):
    """PEM files."""

    cert: Path
    key: Path

    @property
    def serial(self) -> int:
        return x509.load_pem_x509_certificate(self.cert.read_bytes()).serial_number


class Authority:
    """A private one, as cert-manager's issuer of the kind ``ca`` has it."""

    def __init__(self, name: str = "resolute test authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        made = _builder(self._name, self._name, self._key).add_extension(x509.BasicConstraints(True, 0), critical=True)
        self._certificate = made.sign(self._key, hashes.SHA256())

    @property
    def pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self, directory: Path, *, names: tuple[str, ...] = (), addresses: tuple[str, ...] = ("127.0.0.1",)
    ) -> Pair:
        """A pair in ``directory``; one that is there already is replaced, the certificate before its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        leaf = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "resolute test")])
        certificate = (
            _builder(leaf, self._name, key)
            .add_extension(_covered(names, addresses), critical=False)
            .add_extension(x509.BasicConstraints(False, None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        return _write(directory, certificate, key)


def self_signed(directory: Path, *, names: tuple[str, ...] = (), addresses: tuple[str, ...] = ("127.0.0.1",)) -> Pair:
    """A new pair in ``directory``, for DNS names and addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "resolute test")])
    certificate = (
        _builder(name, name, key)
        .add_extension(_covered(names, addresses), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _write(directory, certificate, key)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )


def _covered(names: tuple[str, ...], addresses: tuple[str, ...]) -> x509.SubjectAlternativeName:
    covers = [*map(x509.DNSName, names), *(x509.IPAddress(ip_address(each)) for each in addresses)]
    return x509.SubjectAlternativeName(covers)


def _write(directory: Path, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    pair = Pair(directory / "cert.pem", directory / "key.pem")
    _replace(pair.cert, certificate.public_bytes(serialization.Encoding.PEM))
    _replace(
        pair.key,
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
    return pair


def _replace(path: Path, content: bytes) -> None:
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.chmod(0o600)
    os.replace(new, path)
