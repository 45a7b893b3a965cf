"""Lists and watches of a server that says what the test wants; needs no cluster.."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from libs.errors import Unavailable
from libs.run_until_first_exits import end
from services.launcher.backends.kubernetes.client import informer as follow
from services.launcher.backends.kubernetes.client.api import KubeApi, Refused
from services.launcher.backends.kubernetes.client.informer import Informer
from services.launcher.backends.kubernetes.client.objects import Named
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.client.faulty import Json, event, named, serving


class Server:
    """Lists what it has; plays its script of watches, one after the other, and then says nothing more."""

    def __init__(self) -> None:
        self.items: list[Json] = []
        self.version = 1
        self.page = 1000
        self.watches: list[list[bytes] | int] = []
        """What each watch says before it ends, or the status with which it is refused."""
        self.becomes: tuple[list[Json], int] | None = None
        """What it has, and at which version, from the moment on in which somebody watches."""
        self.lists = 0
        self.asked: list[str] = []
        """Version from which each watch was asked for."""
        self.answers: list[web.Response] = []
        """To requests that are not watches, before any list."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return self.answers.pop(0) if self.answers else self._list(request)
        self.asked.append(request.query["resourceVersion"])
        if self.becomes is not None:
            (self.items, self.version), self.becomes = self.becomes, None
        if not self.watches:
            await asyncio.sleep(30)
        script = self.watches.pop(0)
        if isinstance(script, int):
            return web.json_response({"kind": "Status", "code": script, "reason": "X"}, status=script)
        answer = web.StreamResponse()
        await answer.prepare(request)
        for line in script:
            await answer.write(line)
        if not script or not script[-1].endswith(b"\n"):
            assert request.transport is not None
            await asyncio.sleep(0.05)
            request.transport.abort()
        return answer

    def _list(self, request: web.Request) -> web.Response:
        self.lists += 1
        begin = int(request.query.get("continue") or 0)
        page = min(self.page, int(request.query["limit"]))
        metadata: Json = {"resourceVersion": str(self.version)}
        if begin + page < len(self.items):
            metadata["continue"] = str(begin + page)
        return web.json_response({"metadata": metadata, "items": self.items[begin : begin + page]})


class Notes:
    def __init__(self) -> None:
        self.told: list[str] = []

    def on_upsert(self, item: Named) -> None:
        self.told.append(f"{item.metadata.name}@{item.metadata.resource_version}")

    def on_delete(self, item: Named) -> None:
        self.told.append(f"-{item.metadata.name}")


@asynccontextmanager
async def api_of(server: Server) -> AsyncIterator[KubeApi]:
    async with serving(server.handle) as url:
        configuration = Configuration(host=url)

        async def credentials() -> Configuration:
            return Configuration(host=url)

        api = KubeApi(configuration, credentials=credentials, max_requests=4, timeout_s=5)
        try:
            yield api
        finally:
            await api.close()


@asynccontextmanager
async def following(server: Server) -> AsyncIterator[Notes]:
    notes = Notes()
    async with api_of(server) as api:
        followed = Informer(api, what="things", path="/things", kind=Named, handler=notes)
        running = asyncio.create_task(followed.run())
        try:
            yield notes
        finally:
            await end(running)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(follow, "LAST_PAUSE_S", 0.05)


async def test_a_list_comes_in_pages_and_the_watch_begins_where_it_ended() -> None:
    server = Server()
    server.items, server.page, server.version = [named(f"n{index}", index) for index in range(7)], 3, 9
    server.watches = [[event("ADDED", named("late", 10))]]
    async with following(server) as notes:
        await eventually(lambda: "late@10" in notes.told)
    assert notes.told == [*(f"n{index}@{index}" for index in range(7)), "late@10"]
    assert (server.lists, server.asked[0]) == (3, "9")


async def test_a_list_is_told_in_the_order_that_makes_sense() -> None:
    server, notes = Server(), Notes()
    server.items, server.page = [named("a", 1), named("b", 1), named("z", 1)], 2
    async with api_of(server) as api:
        follow = Informer(
            api,
            what="things",
            path="/things",
            kind=Named,
            handler=notes,
            order=lambda item: item.metadata.name != "z",
        )
        await follow.read_list()
    assert notes.told == ["z@1", "a@1", "b@1"]


BOOKMARK: Json = {  # as Kubernetes 1.20 sends it for Jobs
    "kind": "Job",
    "apiVersion": "batch/v1",
    "metadata": {"resourceVersion": "8", "creationTimestamp": None},
    "spec": {"template": {"metadata": {"creationTimestamp": None}, "spec": {"containers": None}}},
    "status": {},
}


async def test_a_watch_that_ends_goes_on_where_it_was() -> None:
    server = Server()
    server.watches = [
        [event("ADDED", named("a", 5)), event("BOOKMARK", BOOKMARK)],
        [event("MODIFIED", named("a", 9)), event("DELETED", named("a", 10))],
        [],
    ]
    async with following(server) as notes:
        await eventually(lambda: len(server.asked) >= 3)
    assert notes.told == ["a@5", "a@9", "-a"]
    assert server.asked[:3] == ["1", "8", "10"]
    assert server.lists == 1


async def test_a_connection_that_breaks_loses_nothing() -> None:
    server = Server()
    torn = event("ADDED", named("b", 6))[:20]
    server.watches = [[event("ADDED", named("a", 5)), torn], 500, [event("ADDED", named("b", 6))]]
    async with following(server) as notes:
        await eventually(lambda: "b@6" in notes.told)
    assert notes.told == ["a@5", "b@6"]
    assert server.asked[:3] == ["1", "5", "5"]


GONE = [[event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})], 410]


@pytest.mark.parametrize("gone", GONE, ids=["in the watch", "as its status"])
async def test_a_version_that_is_too_old_means_reading_the_list_again(gone: list[bytes] | int) -> None:
    server = Server()
    server.items = [named("kept", 1), named("deleted", 2), named("changed", 3), named("made again", 3, "first")]
    server.watches = [gone]
    later = [named("kept", 1), named("changed", 8), named("new", 9), named("made again", 9, "second")]
    server.becomes = (later, 9)
    async with following(server) as notes:
        await eventually(lambda: "-deleted" in notes.told)
        assert notes.told[:4] == ["kept@1", "deleted@2", "changed@3", "made again@3"]
        assert notes.told[4:] == ["changed@8", "new@9", "-made again", "made again@9", "-deleted"]


async def test_a_line_that_is_no_event_is_not_the_end() -> None:
    server = Server()
    server.watches = [[b'{"type":"ADDED","object":5}\n'], [event("ADDED", named("a", 5))]]
    async with following(server) as notes:
        await eventually(lambda: "a@5" in notes.told)


async def test_a_watch_that_may_no_longer_be_made_is_tried_again() -> None:
    server = Server()
    server.watches = [403, [event("ADDED", named("a", 5))]]
    async with following(server) as notes:
        await eventually(lambda: "a@5" in notes.told)
    assert server.lists == 2


async def test_too_many_requests_waits_as_long_as_the_server_says_with_everything() -> None:
    server = Server()
    server.answers = [web.Response(status=429, headers={"Retry-After": "1"})]
    loop = asyncio.get_running_loop()
    async with api_of(server) as api:
        began = loop.time()
        first = asyncio.create_task(api.request("GET", "/things", query={"limit": "1"}))
        await eventually(lambda: not server.answers)
        await api.request("GET", "/others", query={"limit": "1"})
        await first
        assert loop.time() - began >= 1.0
        assert server.lists == 2


async def test_a_server_that_never_has_time_is_given_up_for_now(monkeypatch: pytest.MonkeyPatch) -> None:
    from services.launcher.backends.kubernetes.client import api as module

    monkeypatch.setattr(module, "_LONGEST_PAUSE_S", 0.01)
    server = Server()
    server.answers = [web.Response(status=429) for _ in range(20)]
    async with api_of(server) as api:
        with pytest.raises(Unavailable, match="too much to do"):
            await api.request("GET", "/things")


async def test_refusals_and_failures_are_told_apart() -> None:
    server = Server()
    server.answers = [
        web.json_response({"message": "quota", "reason": "Forbidden", "code": 403}, status=403),
        web.Response(status=500, text="etcd is gone"),
        web.Response(status=502, text="<html>"),
    ]
    async with api_of(server) as api:
        with pytest.raises(Refused, match="quota"):
            await api.request("GET", "/things")
        with pytest.raises(Unavailable, match="answered 500: etcd is gone"):
            await api.request("GET", "/things")
        with pytest.raises(Unavailable, match="answered 502"):
            await api.request("GET", "/things")


async def test_no_more_requests_at_once_than_allowed() -> None:
    most = current = 0

    async def slow(_: web.Request) -> web.StreamResponse:
        nonlocal most, current
        current += 1
        most = max(most, current)
        await asyncio.sleep(0.02)
        current -= 1
        return web.json_response({})

    server = Server()
    server.handle = slow  # type: ignore[method-assign]
    async with api_of(server) as api:
        await asyncio.gather(*(api.request("GET", "/things") for _ in range(30)))
    assert most == 4
