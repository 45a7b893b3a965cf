"""The key pair with which the containers of one experiment reach one another.

Source: docs/reference/harness-protocol.md 5 (SSH keys); docs/reference/platform.md 18 (security.ssh).
"""

from __future__ import annotations

from typing import NamedTuple

from libs.cluster.config import SshConfig

_RSA_EXPONENT = 65537


class KeyPair(NamedTuple):
    """Both as text, ending in a newline; the public key is a line for ``authorized_keys``."""

    private: str
    public: str


def new_key_pair(settings: SshConfig) -> KeyPair:
    """A new pair of the kind that the cluster wants. An RSA key takes seconds to find.

    The private key is in OpenSSH's own format, PKCS#1 (RSA) or SEC1 (ECDSA).
    """
    # Five megabytes, which a service that makes no keys need not hold.
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    key: ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
    form = PrivateFormat.TraditionalOpenSSL
    match settings.key_type:
        case "RSA":
            key = rsa.generate_private_key(_RSA_EXPONENT, settings.rsa_key_size)
        case "ECDSA":
            key = ec.generate_private_key(ec.SECP256R1())
        case _:
            key, form = ed25519.Ed25519PrivateKey.generate(), PrivateFormat.OpenSSH
    private = key.private_bytes(Encoding.PEM, form, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return KeyPair(private.decode(), public.decode() + "\n")
