from __future__ import annotations

import asyncio
import socket

import pytest
from structlog.testing import capture_logs

from libs.serving.status import serve_status
from libs.telemetry import TelemetrySettings


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


without_ipv6 = pytest.mark.skipif(
    not has_ipv6(), reason="this machine has no IPv6: sysctl net.ipv6.conf.lo.disable_ipv6=0"
)


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=without_ipv6)])
async def test_the_address_is_served_while_the_block_runs(host: str) -> None:
    with capture_logs() as logs:
        async with serve_status(TelemetrySettings(status_host=host, status_port=0), needs=()):
            port = next(entry["port"] for entry in logs if entry["event"] == "status.listening")
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"GET /readyz HTTP/1.0\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.0 200")
            writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, port)


async def test_without_a_port_nothing_is_served() -> None:
    with capture_logs() as logs:
        async with serve_status(TelemetrySettings(), needs=("database",)) as readiness:
            assert not readiness.is_ready(await readiness.problems())
    assert "status.listening" not in [entry["event"] for entry in logs]
