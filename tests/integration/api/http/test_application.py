"""Requests through the whole adapter, in process: what clients see, byte for byte where they care."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from structlog.testing import capture_logs

from libs.errors import NotFound, PermissionDenied, Unauthenticated
from libs.telemetry import value
from services.api.access.credentials import ALLOCATION_TOKEN_HEADER
from services.api.access.route_permission import ANYBODY, USERS
from services.api.http.call import Call
from services.api.http.replies.reply import RawResponse
from services.api.http.routing import Route, RouteToLoad
from tests.harness.no_tls import NO_TLS
from tests.integration.api.http.service import ROUTES, World, application

USER = {"authorization": "Bearer hans"}


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def client(world: World) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(application(world))
    async with httpx.AsyncClient(transport=transport, base_url="http://api", verify=NO_TLS, headers=USER) as client:
        yield client


BODIES = [
    ("application/json", b'{"number": 7}', 7),
    (None, b'{"number": 7}', 7),
    ("application/x-www-form-urlencoded", b'{"number": "7"}', 7),
    (None, b"", 0),
]


@pytest.mark.parametrize(("content_type", "body", "number"), BODIES)
async def test_bodies_are_json_whatever_they_call_themselves(
    client: httpx.AsyncClient, content_type: str | None, body: bytes, number: int
) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    answer = await client.post("/api/v1/echoes", content=body, headers=headers)
    assert answer.status_code == 200
    assert answer.json() == {"number": number, "size": "0", "text": "", "caller": "hans"}
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"


async def test_a_bare_string_is_a_body(client: httpx.AsyncClient) -> None:
    assert (await client.post("/api/v1/password", content=b'"s3cret"')).json()["text"] == "s3cret"
    assert (await client.post("/api/v1/password")).json()["text"] == ""


async def test_nothing_to_say_is_an_empty_object(client: httpx.AsyncClient) -> None:
    answer = await client.request("DELETE", "/api/v1/echoes/5", content=b"ignored, not JSON")
    assert (answer.status_code, answer.content) == (200, b"{}")


async def test_replies_may_carry_headers(client: httpx.AsyncClient) -> None:
    answer = await client.post("/api/v1/auth/login")
    assert answer.headers["set-cookie"] == "auth=t; Path=/"
    assert answer.json()["text"] == "welcome"


REFUSALS = [  # method, path, body, headers, status, body of the answer
    ("GET", "/api/v1/echoes/x", b"", USER, 400, (3, "InvalidArgument", "echoId: expected a 32-bit integer, got 'x'")),
    ("GET", "/api/v1/sized?size=x", b"", {}, 400, (3, "InvalidArgument", "size: expected `int`, got `str`")),
    ("POST", "/api/v1/echoes", b"{", USER, 400, (3, "InvalidArgument", "the request body is not JSON: Input data was truncated")),  # noqa: E501
    ("POST", "/api/v1/echoes", b'"' + b"x" * 10_000, USER, 400, (3, "InvalidArgument", "the request body is larger than 10000 bytes")),  # noqa: E501
    ("POST", "/api/v1/echoes", b"{", {}, 401, (16, "Unauthenticated", "token missing")),
    ("POST", "/api/v1/echoes", b"", {"authorization": "Basic x"}, 401, (16, "Unauthenticated", "invalid credentials")),
    ("POST", "/api/v1/echoes", b"", {"authorization": "Bearer stale"}, 401, (16, "Unauthenticated", "invalid credentials")),  # noqa: E501
    ("POST", "/api/v1/echoes", b"", {"cookie": "auth=inactive", "sec-fetch-site": "same-origin"}, 403, (7, "PermissionDenied", "user does not have permission")),  # noqa: E501
    ("GET", "/api/v1/fail/missing", b"", USER, 404, (5, "NotFound", "thing 'x' not found")),
    ("GET", "/api/v1/fail/unsayable", b"", USER, 404, (5, "NotFound", "thing '?' not found")),
    ("GET", "/api/v1/fail/away", b"", USER, 503, (14, "Unavailable", "bus")),
    ("GET", "/api/v1/fail/deadlock", b"", USER, 503, (14, "Unavailable", "the database does not answer, try again")),
    ("GET", "/api/v1/nowhere", b"", {}, 501, (12, "Unimplemented", "Not Implemented")),
    ("PUT", "/api/v1/echoes", b"", {}, 405, (12, "Unimplemented", "method PUT is not allowed: POST")),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "headers", "status", "error"), REFUSALS)
async def test_errors_of_the_api(
    world: World, method: str, path: str, body: bytes, headers: dict[str, str], status: int, error: tuple[Any, ...]
) -> None:
    transport = httpx.ASGITransport(application(world))
    async with httpx.AsyncClient(transport=transport, base_url="http://api", verify=NO_TLS) as stranger:
        answer = await stranger.request(method, path, content=body, headers=headers)
    code, reason, text = error
    assert answer.status_code == status
    assert answer.json() == {"error": {"code": code, "reason": reason, "error": text}}
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers.get("retry-after") == ("1" if status == 503 else None)
    assert world.bodies_read == 0


async def test_a_bug_is_logged_and_counted_and_not_told(client: httpx.AsyncClient) -> None:
    labels = {"method": "GET", "route": "/api/v1/fail/{how}"}
    before = value("resolute_api_unexpected_errors_total", **labels)
    with capture_logs() as logs:
        answer = await client.get("/api/v1/fail/bug", headers={"x-request-id": "req-1"})
    assert answer.status_code == 500
    assert answer.json() == {
        "error": {"code": 13, "reason": "Internal", "error": "internal server error (request req-1)"}
    }
    assert answer.headers["x-request-id"] == "req-1"
    assert [entry["event"] for entry in logs] == ["http.unexpected"]
    assert value("resolute_api_unexpected_errors_total", **labels) == before + 1


async def test_bad_request_ids_are_replaced(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/v1/echoes/1", headers={"x-request-id": "x" * 100})
    assert len(answer.headers["x-request-id"]) == 32


async def test_probes_may_ask_with_head(client: httpx.AsyncClient) -> None:
    probed, read = await client.head("/docs/rest-api"), await client.get("/docs/rest-api")
    assert (probed.status_code, probed.headers["content-length"]) == (200, read.headers["content-length"])
    assert (await client.head("/api/v1/auth/login")).status_code == 405
    refused = await client.head("/raw-fail/missing")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET"), "it is not public"


METHODS = [
    ("PATCH", "/api/v1/echoes/7", "DELETE, GET"),
    ("LINK", "/api/v1/echoes", "POST"),
    ("POST", "/docs/rest-api", "HEAD, GET"),
    ("OPTIONS", "/api/v1/lines", "GET"),
]


@pytest.mark.parametrize(("method", "path", "allowed"), METHODS)
async def test_a_known_path_says_which_methods_it_has(
    client: httpx.AsyncClient, method: str, path: str, allowed: str
) -> None:
    answer = await client.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    assert allowed in answer.text


async def test_streams_are_lines_for_those_who_ask_for_lines(client: httpx.AsyncClient) -> None:
    for accept, media_type in (("*/*", "application/json"), ("application/x-ndjson", "application/x-ndjson")):
        answer = await client.get("/api/v1/lines", headers={"accept": accept})
        assert answer.headers["content-type"] == media_type


async def test_errors_elsewhere(client: httpx.AsyncClient) -> None:
    answer = await client.get("/raw-fail/missing")
    assert (answer.status_code, answer.json()) == (404, {"message": "thing 'x' not found"})
    answer = await client.get("/x?y=1")
    assert (answer.status_code, answer.json()) == (404, {"message": "api not found: GET /x"})


async def test_tokens_of_allocations_count_under_the_api_only(world: World) -> None:
    headers = {"Grpc-Metadata-x-allocation-token": "Bearer 1.a.1"}
    transport = httpx.ASGITransport(application(world))
    async with httpx.AsyncClient(transport=transport, base_url="http://api", verify=NO_TLS, headers=headers) as task:
        assert (await task.post("/api/v1/echoes")).json()["caller"] == "1.a.1"
        assert (await task.get("/download/whole")).status_code == 401


@pytest.mark.parametrize(
    ("size", "accept", "encoding"),
    [(10, "gzip", None), (5000, "gzip, deflate", "gzip"), (5000, "identity", None), (100_000, "br;q=1, gzip", "gzip"), (5000, "gzip;q=0", None)],  # noqa: E501
)  # fmt: skip
async def test_large_replies_are_compressed_for_those_who_can(
    client: httpx.AsyncClient, size: int, accept: str, encoding: str | None
) -> None:
    answer = await client.get(f"/api/v1/sized?size={size}", headers={"accept-encoding": accept})
    assert answer.headers.get("content-encoding") == encoding
    assert answer.json()["text"] == "x" * size


async def test_pretty(client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/v1/echoes/5?pretty")).text.startswith('{\n    "number": 5,')


async def test_streams_are_one_result_per_line(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/v1/lines?size=3", headers={"accept-encoding": "identity"})
    assert answer.status_code == 200
    assert "content-encoding" not in answer.headers
    assert "content-length" not in answer.headers
    assert answer.text.endswith("}\n")
    assert [json.loads(line)["result"]["number"] for line in answer.text.removesuffix("\n").split("\n")] == [0, 1, 2]


@pytest.mark.parametrize("coding", ["identity", "gzip"])
async def test_an_empty_stream_is_an_empty_answer(client: httpx.AsyncClient, coding: str) -> None:
    answer = await client.get("/api/v1/lines?size=0", headers={"accept-encoding": coding})
    assert (answer.status_code, answer.content) == (200, b"")


def stream_error(grpc: int, status: int, phrase: str, text: str) -> dict[str, Any]:
    return {
        "error": {
            "grpcCode": grpc,
            "httpCode": status,
            "message": text,
            "httpStatus": phrase,
            "details": [],
            "error": text,
        }
    }


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        ("/api/v1/failing-lines/handler", USER, stream_error(3, 400, "Bad Request", "Limit must be >= 0")),
        ("/api/v1/failing-lines/first", USER, stream_error(5, 404, "Not Found", "task 'x' not found")),
        ("/api/v1/lines", {"authorization": ""}, stream_error(16, 401, "Unauthorized", "token missing")),
    ],
)
async def test_streams_that_fail_before_the_first_line_are_http_errors(
    client: httpx.AsyncClient, path: str, headers: dict[str, str], expected: dict[str, Any]
) -> None:
    answer = await client.get(path, headers=headers)
    assert answer.status_code == expected["error"]["httpCode"]
    assert answer.json() == expected


async def test_streams_that_fail_later_say_so_in_the_last_line(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/v1/failing-lines/second")
    assert answer.status_code == 200
    first, last, end = answer.text.split("\n")
    assert json.loads(first)["result"]["number"] == 1
    assert json.loads(last) == stream_error(5, 404, "Not Found", "task 'y' not found")
    assert end == ""


async def test_a_stream_ends_soon_after_its_reader_has_logged_out(world: World) -> None:
    transport = httpx.ASGITransport(application(world, recheck_interval_s=0.01, silence_s=0.01))
    async with (
        asyncio.timeout(10),
        httpx.AsyncClient(transport=transport, base_url="http://api", verify=NO_TLS) as client,
    ):
        following = asyncio.create_task(client.get("/api/v1/follow", headers=USER))
        await world.held.wait()
        world.refused = asyncpg.CannotConnectNowError("the database system is starting up")
        for _ in range(3):
            await world.refusals.get()
        assert not following.done(), "a database that is away ends nothing"
        world.refused = Unauthenticated("invalid credentials")
        first, last, _ = (await following).text.split("\n")
    assert json.loads(first)["result"]["number"] == 1
    assert json.loads(last) == stream_error(16, 401, "Unauthorized", "invalid credentials")
    assert world.released.is_set()


async def test_only_what_may_be_done_twice_is_done_again_for_a_task(client: httpx.AsyncClient, world: World) -> None:
    task = {"authorization": "", ALLOCATION_TOKEN_HEADER: "Bearer 1.1"}
    for path, headers, status, done in (
        ("/api/v1/reports", task, 200, 2),
        ("/api/v1/reports", USER, 503, 1),
        ("/api/v1/things", task, 503, 1),
    ):
        world.losses, world.done = 1, 0
        answer = await client.post(path, headers=headers)
        assert (answer.status_code, world.done) == (status, done)


async def test_downloads_are_never_compressed(client: httpx.AsyncClient) -> None:
    answer = await client.get("/download/whole", headers={"accept-encoding": "gzip"})
    assert answer.content == b"a" * 5000 + b"b"
    assert answer.headers["content-type"] == "application/gzip"
    assert answer.headers["content-disposition"] == "attachment"
    assert "content-encoding" not in answer.headers


async def test_downloads_that_fail_before_the_first_byte_are_http_errors(client: httpx.AsyncClient) -> None:
    answer = await client.get("/download/early")
    assert (answer.status_code, answer.json()) == (404, {"message": "file 'x' not found"})


async def test_responses_of_starlette_pass(client: httpx.AsyncClient) -> None:
    answer = await client.get("/starlette")
    assert answer.text == "/starlette"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_health(client: httpx.AsyncClient, world: World) -> None:
    answer = await client.get("/health", headers={"authorization": ""})
    assert (answer.status_code, answer.json()) == (
        200,
        {"status": "up", "database": "up", "bus": "up", "resource_managers": [], "problems": {}},
    )
    world.healthy = False
    assert (await client.get("/health")).status_code == 503


async def test_durations_are_measured_by_route_and_not_by_what_clients_make_up(client: httpx.AsyncClient) -> None:
    count = "resolute_api_request_duration_seconds_count"
    known = {"method": "GET", "route": "/api/v1/echoes/{echoId}", "status": "200"}
    made_up = {"method": "unknown", "route": "unknown", "status": "404"}
    before = value(count, **known), value(count, **made_up)
    for path in ("/api/v1/echoes/1", "/api/v1/echoes/2", "/made/up"):
        await client.get(path)
    await client.request("BREW", "/pot")
    assert (value(count, **known), value(count, **made_up)) == (before[0] + 2, before[1] + 2)
    assert value(count, method="BREW", route="unknown", status="404") == 0
    assert value("resolute_api_requests_in_progress") == 0


async def test_the_interface_describes_itself(client: httpx.AsyncClient, world: World) -> None:
    document = (await client.get("/api/v1/openapi.json")).json()
    assert document == application(world).openapi()
    assert "/api/v1/echoes/{echoId}" in document["paths"]
    assert "/docs/reference.js" in (await client.get("/docs")).text
    assert "/api/v1/openapi.json" in (await client.get("/docs/reference.js")).text


@pytest.mark.parametrize("of_fastapi", [False, True])
async def test_what_is_added_comes_after_the_table_and_fails_like_it(world: World, of_fastapi: bool) -> None:
    async def page(request: Request) -> Response:
        if request.url.path == "/pages/x":
            raise NotFound("page", "x")
        return PlainTextResponse("a page")

    app = application(world)
    adding = app.framework if of_fastapi else app
    adding.add_route("/pages/{name}", page)
    adding.add_route("/health", page)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api", verify=NO_TLS) as client:
        assert (await client.get("/pages/y")).text == "a page"
        answer = await client.get("/pages/x")
        assert (answer.status_code, answer.json()) == (404, {"message": "page 'x' not found"})
        assert "database" in (await client.get("/health")).json()
        assert (await client.get("/nowhere")).json() == {"message": "api not found: GET /nowhere"}
        refused = await client.post("/pages/y")
        assert (refused.status_code, refused.json()) == (405, {"detail": "Method Not Allowed"})


async def test_what_fastapi_routes_comes_after_what_starlette_routes(world: World) -> None:
    app = application(world)
    app.add_route("/pages/first", lambda _: PlainTextResponse("of Starlette"))

    @app.framework.get("/pages/{name}")
    async def page(name: str, size: int = 1) -> dict[str, str | int]:
        return {"name": name, "size": size}

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api", verify=NO_TLS) as client:
        assert (await client.get("/pages/first")).text == "of Starlette"
        assert (await client.get("/pages/second?size=2")).json() == {"name": "second", "size": 2}
        assert (await client.get("/pages/second?size=none")).status_code == 422


async def test_a_route_is_loaded_for_its_first_call_while_others_are_answered(world: World) -> None:
    loading, may_load = threading.Event(), threading.Event()
    loads: list[str] = []

    async def answer(_: Call[Any, Any, Any]) -> RawResponse:
        return RawResponse(b"late")

    def load() -> Route:
        loads.append(threading.current_thread().name)
        loading.set()
        assert may_load.wait(60)
        return Route(method="GET", path="/late", handler=answer, permission=ANYBODY, raw=True, summary="A late one")

    late = RouteToLoad(method="GET", path="/late", permission=ANYBODY, load=load)
    app = application(world, routes=[*ROUTES, late])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api", verify=NO_TLS) as client:
        first = asyncio.create_task(client.get("/late"))
        assert await asyncio.to_thread(loading.wait, 60)
        assert "database" in (await client.get("/health")).json()
        assert not first.done()
        may_load.set()
        assert (await first).text == "late"
        assert (await client.get("/late")).text == "late"
        assert len(loads) == 1
        assert loads != [threading.current_thread().name]
        assert (await client.get("/api/v1/openapi.json")).json()["paths"]["/late"]["get"]["summary"] == "A late one"


@pytest.mark.parametrize(
    ("path", "shape"), [("/late", {"message"}), ("/api/v1/late", {"error"})], ids=["outside", "of the interface"]
)
async def test_a_route_that_cannot_be_loaded_is_answered_and_tried_again(
    world: World, path: str, shape: set[str]
) -> None:
    failures = [ImportError("a module that was replaced")]

    async def answer(_: Call[Any, Any, Any]) -> RawResponse:
        return RawResponse(b"late")

    def load() -> Route:
        if failures:
            raise failures.pop()
        return Route(method="GET", path=path, handler=answer, permission=ANYBODY)

    app = application(world, routes=[RouteToLoad(method="GET", path=path, permission=ANYBODY, load=load)])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api", verify=NO_TLS) as client:
        refused = await client.get(path)
        assert (refused.status_code, set(refused.json())) == (500, shape)
        assert (await client.get(path)).text == "late"


@pytest.mark.parametrize("stream", [False, True], ids=["a message", "a stream"])
async def test_a_route_is_loaded_for_nobody_who_may_not_call_it(world: World, stream: bool) -> None:
    loads: list[str] = []

    async def answer(_: Call[Any, Any, Any]) -> RawResponse:
        return RawResponse(b"late")

    def route_of(path: str) -> Route:
        return Route(method="GET", path=path, handler=answer, stream=stream)

    def load() -> Route:
        loads.append("/api/v1/late")
        return route_of("/api/v1/late")

    late = RouteToLoad(method="GET", path="/api/v1/late", permission=USERS, load=load, stream=stream)
    app = application(world, routes=[route_of("/api/v1/early"), late])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api", verify=NO_TLS) as client:
        for headers in ({}, {"authorization": "Basic hans"}):
            early = await client.get("/api/v1/early", headers=headers)
            refused = await client.get("/api/v1/late", headers=headers)
            assert (refused.status_code, refused.content) == (401, early.content)
        world.refused = PermissionDenied("user is not active")
        assert (await client.get("/api/v1/late", headers=USER)).status_code == 403
        assert loads == []
        world.refused = None
        assert (await client.get("/api/v1/late", headers=USER)).text == "late"
        assert loads == ["/api/v1/late"]


async def test_cors_is_off_unless_asked_for(world: World) -> None:
    for enabled, allowed in ((False, None), (True, "http://elsewhere")):
        transport = httpx.ASGITransport(application(world, enable_cors=enabled))
        async with httpx.AsyncClient(transport=transport, base_url="http://api", verify=NO_TLS, headers=USER) as client:
            answer = await client.get("/api/v1/echoes/1", headers={"origin": "http://elsewhere"})
        assert answer.headers.get("access-control-allow-origin") == allowed


@pytest.fixture
async def polling(world: World) -> tuple[asyncio.Task[None], asyncio.Queue[dict[str, Any]], list[dict[str, Any]]]:
    """A long poll under way: the server's task, what it may receive, and what it has sent."""
    app = application(world)
    incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/v1/poll",
        "raw_path": b"/api/v1/poll",
        "query_string": b"",
        "headers": [(b"authorization", b"Bearer hans")],
    }
    serving = asyncio.create_task(app(scope, incoming.get, send))
    await asyncio.wait_for(world.held.wait(), 5)
    return serving, incoming, sent


async def test_a_long_poll_ends_with_its_client(world: World, polling: Any) -> None:
    serving, incoming, sent = polling
    await incoming.put({"type": "http.disconnect"})
    await asyncio.wait_for(serving, 5)
    assert world.released.is_set()
    assert sent == []


async def test_whoever_waits_when_the_service_stops_is_told_to_ask_again(world: World, polling: Any) -> None:
    serving, _, sent = polling
    serving.cancel()  # as uvicorn does when the time of its graceful shutdown is over
    await asyncio.wait({serving}, timeout=5)
    assert serving.cancelled()
    assert world.released.is_set()
    assert sent[0]["status"] == 503
    assert (b"retry-after", b"1") in sent[0]["headers"]
    assert json.loads(sent[1]["body"])["error"]["error"] == "the service is stopping, try again"
