"""Pages of the status server, called as the WSGI application that they are, beside an event loop that runs or hangs."""

from __future__ import annotations

import asyncio
import json
from wsgiref.types import StartResponse
from wsgiref.util import setup_testing_defaults

import pytest

from libs.serving import status
from libs.serving.readiness import NOT_YET, Readiness, always_there
from libs.serving.status import StatusPages
from libs.telemetry import counter

COUNTED = counter("resolute_test_status_total", "Something to see")


def get(pages: StatusPages, path: str) -> tuple[str, str]:
    """Status line and body of a page."""
    environ: dict[str, object] = {"PATH_INFO": path}
    setup_testing_defaults(environ)
    lines: list[str] = []

    def start_response(line: str, headers: list[tuple[str, str]], exc_info: object = None) -> None:
        lines.append(line)

    answer: StartResponse = start_response  # type: ignore[assignment]  # nobody writes by the old way
    body = b"".join(pages(environ, answer))
    return lines[0], body.decode()


async def test_pages_tell_of_life_readiness_and_metrics() -> None:
    readiness = Readiness(("database",))
    pages = StatusPages(readiness, asyncio.get_running_loop())
    COUNTED.inc()
    line, body = await asyncio.to_thread(get, pages, "/metrics")
    assert line == "200 OK"
    assert "resolute_test_status_total 1.0" in body
    line, body = await asyncio.to_thread(get, pages, "/healthz")
    assert (line, json.loads(body)) == ("200 OK", {"event_loop": "ok"})
    line, body = await asyncio.to_thread(get, pages, "/readyz")
    assert (line, json.loads(body)) == ("503 Service Unavailable", {"database": NOT_YET})
    readiness.register("database", always_there)
    line, body = await asyncio.to_thread(get, pages, "/readyz")
    assert (line, json.loads(body)) == ("200 OK", {"database": "ok"})
    assert (await asyncio.to_thread(get, pages, "/else"))[0] == "404 Not Found"


@pytest.mark.parametrize("page", ["/healthz", "/readyz"])
async def test_an_event_loop_that_hangs_is_told(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "TURN_WITHIN_S", 0.01)
    pages = StatusPages(Readiness(()), asyncio.get_running_loop())
    # Called in the thread of the loop, which therefore takes no turn.
    line, body = get(pages, page)
    assert line == "503 Service Unavailable"
    assert json.loads(body)["event_loop"].startswith("no turn")
