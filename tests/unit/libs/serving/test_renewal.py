"""Which certificate a connection is shown that begins now, whatever is done to the files."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography.x509 import load_der_x509_certificate
from structlog.testing import capture_logs

from libs.serving.tls.renewal import ServerCertificate
from tests.harness.certificates import Authority, Pair


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def pair(tmp_path: Path, authority: Authority) -> Pair:
    return authority.issue(tmp_path)


def shown(server: ServerCertificate, authority: Authority, *, name: str | None) -> int:
    """The serial number that a client of ``authority`` is shown, which names the server or does not."""
    context = ssl.create_default_context(cadata=authority.pem.decode())
    context.check_hostname = False
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        context.wrap_bio(to_client, to_server, server_hostname=name),
        server.context.wrap_bio(to_server, to_client, server_side=True),
    ]
    unfinished = list(ends)
    for end in ends * 5:
        if end in unfinished:
            try:
                end.do_handshake()
                unfinished.remove(end)
            except ssl.SSLWantReadError:
                pass
    assert unfinished == []
    certificate = ends[0].getpeercert(binary_form=True)
    assert certificate is not None
    return load_der_x509_certificate(certificate).serial_number


@pytest.mark.parametrize("name", [None, "api.example.com"])
def test_a_new_pair_is_shown_to_who_names_the_server_and_who_does_not(
    pair: Pair, authority: Authority, name: str | None
) -> None:
    server = ServerCertificate(cert=pair.cert, key=pair.key)
    first = pair.serial
    assert shown(server, authority, name=name) == first
    for _ in range(2):
        authority.issue(pair.cert.parent)
        server.look()
        assert shown(server, authority, name=name) == pair.serial != first


def test_half_a_pair_waits_for_its_other_half(pair: Pair, authority: Authority, tmp_path: Path) -> None:
    server = ServerCertificate(cert=pair.cert, key=pair.key)
    before = pair.serial
    (tmp_path / "next").mkdir()
    following = authority.issue(tmp_path / "next")
    following.cert.replace(pair.cert)
    with capture_logs() as logged:
        server.look()
        server.look()
        assert shown(server, authority, name=None) == before
        following.key.replace(pair.key)
        server.look()
    assert shown(server, authority, name=None) == pair.serial != before
    assert [line["event"] for line in logged] == ["certificate.not_renewed", "certificate.renewed"]


@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN CERTIFICATE-----\n"])
def test_files_that_went_wrong_leave_what_is_served(pair: Pair, authority: Authority, content: bytes | None) -> None:
    server = ServerCertificate(cert=pair.cert, key=pair.key)
    before, right = pair.serial, pair.cert.read_bytes()
    pair.cert.unlink() if content is None else pair.cert.write_bytes(content)
    server.look()
    assert shown(server, authority, name=None) == before
    pair.cert.write_bytes(right)
    server.look()
    assert shown(server, authority, name=None) == before


def test_files_that_are_written_anew_with_the_same_content_are_no_renewal(pair: Pair) -> None:
    server = ServerCertificate(cert=pair.cert, key=pair.key)
    pair.cert.write_bytes(pair.cert.read_bytes())
    with capture_logs() as logged:
        server.look()
    assert logged == []
