"""Connections over TLS, and what is known of those that never became any."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from libs.serving.server import TlsServer
from libs.serving.tls import handshakes
from libs.serving.tls.handshakes import HandshakeFailures
from libs.serving.tls.renewal import ServerCertificate
from libs.telemetry import REGISTRY
from tests.harness.certificates import Authority
from tests.harness.serving import Address, serving_http
from tests.harness.waiting import eventually
from tests.integration.libs.serving.talk import GET, Application

BODY = 3 << 20


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def tls(authority: Authority, tmp_path: Path) -> TlsServer:
    pair = authority.issue(tmp_path)
    certificate = ServerCertificate(cert=pair.cert, key=pair.key)
    return TlsServer(certificate.context, HandshakeFailures(monotonic=time.monotonic))


def counted(reason: str) -> float:
    return REGISTRY.get_sample_value("resolute_tls_handshake_failures_total", {"reason": reason}) or 0.0


async def test_requests_are_answered_over_tls(tls: TlsServer, authority: Authority) -> None:
    trusting = ssl.create_default_context(cadata=authority.pem.decode())
    async with serving_http(Application(), tls=tls) as address:
        reader, writer = await asyncio.open_connection(*address, ssl=trusting)
        writer.write(GET % b"one" + GET % b"two")
        writer.write(b"POST /three HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % BODY + b"x" * BODY)
        async with asyncio.timeout(20):
            for answer in (b"/one 0\n", b"/two 0\n", b"/three %d\n" % BODY):
                await reader.readuntil(answer)
        writer.close()


async def nothing_more(failures: HandshakeFailures) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await failures.next()


def distrusts(address: Address) -> None:
    with socket.create_connection(address, timeout=20) as plain, pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(plain, server_hostname=address[0])


def speaks_http(address: Address) -> None:
    with socket.create_connection(address, timeout=20) as plain:
        plain.sendall(GET % b"plain")
        assert plain.recv(100) == b""


@pytest.mark.parametrize(
    ("does", "reason", "says"),
    [(distrusts, "untrusted", "UNKNOWN_CA"), (speaks_http, "plain", "HTTP_REQUEST")],
    ids=["distrusts", "speaks HTTP"],
)
async def test_a_failed_handshake_is_counted_each_time_and_told_once(
    tls: TlsServer, does: Callable[[Address], None], reason: str, says: str
) -> None:
    before = counted(reason)
    async with serving_http(Application(), tls=tls) as address:
        for _ in range(3):
            await asyncio.to_thread(does, address)
        await eventually(lambda: counted(reason) == before + 3)
        told = await tls.failures.next()
        assert (told.address, told.reason) == ("127.0.0.1", reason)
        assert says in told.error
        await nothing_more(tls.failures)


async def test_who_says_nothing_is_counted_and_not_told(tls: TlsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "TIMEOUT_S", 0.1)
    late, left = counted("timeout"), counted("closed")
    async with serving_http(Application(), tls=tls) as address, asyncio.timeout(20):
        reader, writer = await asyncio.open_connection(*address)
        assert await reader.read() == b""
        writer.close()
        _, writer = await asyncio.open_connection(*address)
        writer.close()
        await eventually(lambda: counted("timeout") + counted("closed") == late + left + 2)
    assert counted("timeout") > late
    await nothing_more(tls.failures)
