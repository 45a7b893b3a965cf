from __future__ import annotations

import asyncio

from libs.telemetry import counter
from services.scheduler import status

COUNTED = counter("resolute_test_status_total", "Something to see")


async def get(port: int, path: str) -> tuple[str, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return head.splitlines()[0], body


async def test_metrics_and_health() -> None:
    refused: list[str] = []

    async def refused_streams() -> list[str]:
        return refused

    COUNTED.inc()
    # The port is chosen by the system; nobody but this test needs to know it, so it is read back from the server.
    server = await asyncio.start_server(status.answering(refused_streams), host="127.0.0.1", port=0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        line, body = await get(port, "/metrics")
        assert line == "HTTP/1.1 200 OK"
        assert "resolute_test_status_total 1.0" in body
        assert await get(port, "/health") == ("HTTP/1.1 200 OK", "ok\n")
        refused += ["EVENTS", "LOGS"]
        line, body = await get(port, "/healthz?x")
        assert line == "HTTP/1.1 503 Service Unavailable"
        assert body == "the bus does not store EVENTS, LOGS\n"
        assert (await get(port, "/else"))[0] == "HTTP/1.1 404 Not Found"
