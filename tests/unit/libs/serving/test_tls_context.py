"""Certificate and key as files: what is wrong with them is said at the start."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from libs.errors import InvalidRequest
from libs.serving.tls.context import tls_context
from services.api.settings import HttpSettings
from services.api.startup.server import port_of
from tests.harness.certificates import Pair, self_signed


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return self_signed(tmp_path)


def test_nothing_older_than_tls_1_2_is_spoken(pair: Pair) -> None:
    assert tls_context(cert=pair.cert, key=pair.key).minimum_version == ssl.TLSVersion.TLSv1_2


def test_a_missing_file_is_named(pair: Pair, tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    for wrong in (pair._replace(cert=missing), pair._replace(key=missing)):
        with pytest.raises(InvalidRequest, match=r"security\.tls: .*/missing\.pem cannot be read: No such file"):
            tls_context(cert=wrong.cert, key=wrong.key)


def test_the_key_has_to_be_that_of_the_certificate(pair: Pair, tmp_path: Path) -> None:
    elsewhere = tmp_path / "other"
    elsewhere.mkdir()
    other = self_signed(elsewhere)
    for cert, key in ((pair.cert, other.key), (pair.key, pair.cert)):
        with pytest.raises(InvalidRequest, match="are not a certificate and its key"):
            tls_context(cert=cert, key=key)


def test_nobody_is_asked_for_a_passphrase(pair: Pair) -> None:
    key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
    locked = serialization.BestAvailableEncryption(b"secret")
    pair.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked))
    with pytest.raises(InvalidRequest, match="are not a certificate and its key"):
        tls_context(cert=pair.cert, key=pair.key)


@pytest.mark.parametrize(
    ("http", "is_tls", "port"),
    [
        (HttpSettings(), False, 8080),
        (HttpSettings(), True, 8443),
        (HttpSettings(port=9000), True, 9000),
        (HttpSettings(port=0), False, 0),
    ],
)
def test_the_port_is_that_of_what_is_spoken(http: HttpSettings, is_tls: bool, port: int) -> None:
    assert port_of(http, is_tls=is_tls) == port
