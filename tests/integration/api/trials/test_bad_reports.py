"""Odd and broken reports of training code: the answer of the table, nothing half-written, and the next one is taken."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from libs.db.engine import Database
from libs.ids import new_uuid
from tests.integration.api.tasks.service import Replica, Run, new_experiment, new_run
from tests.scenarios.bad_reports import BODIES, BROKEN, CONTENT_TYPES, GONE, PLACES, READS, VALUES, Place

_STEPS = itertools.count(1000)
FIRST = {(place.method, place.path): place for place in reversed(PLACES)}
"""Of the places of each endpoint."""
REFUSED = {"code": 3, "reason": "InvalidArgument"}
WRITTEN = text("""
SELECT (SELECT count(*) FROM metrics) AS metrics, (SELECT count(*) FROM checkpoints), (SELECT count(*) FROM trials),
       (SELECT count(*) FROM tasks), (SELECT count(*) FROM searcher_events) AS searcher_events,
       (SELECT max(xmin::text::bigint) FROM trials), (SELECT max(xmin::text::bigint) FROM experiments),
       (SELECT max(xmin::text::bigint) FROM checkpoints), (SELECT max(xmin::text::bigint) FROM searcher_events)
""")


class Reporter:
    """Sends what the table says about one trial of a search, and one that runs elsewhere."""

    def __init__(self, db: Database, client: httpx.AsyncClient, run: Run, names: dict[str, str]) -> None:
        self.db = db
        self.client = client
        self.run = run
        self._names = names

    def named(self, template: str) -> str:
        names = {**self._names, "STEP": str(next(_STEPS)), "UUID": new_uuid()}
        for name, value in names.items():
            template = template.replace(name, value)
        return template

    def body(self, place: Place, value: bytes) -> bytes:
        before, after = self.named(place.body).split("VALUE")
        return (
            before.encode() + (self.named(value.decode()).encode() if value == place.usual else value) + after.encode()
        )

    async def send(self, place: Place, body: bytes, **headers: str) -> httpx.Response:
        return await self.client.request(place.method, self.named(place.path), content=body, headers=headers)

    async def written(self) -> Any:
        async with self.db.read() as connection:
            return (await connection.execute(WRITTEN)).one()

    async def trouble(self, place: Place, odd: Mapping[bytes, str | None]) -> list[str]:
        """What is wrong with the answers to what is odd in a place, and with what follows them."""
        found: list[str] = []
        before = await self.written()
        for value, said in sorted(odd.items(), key=lambda pair: pair[1] is None):  # first what is refused
            if said is None and before is not None:
                found.extend(await self._after_refusals(place, before))
                before = None
            answer = await self.send(place, self.body(place, value))
            if not _as_said(answer, said):
                found.append(f"{value[-80:]!r}: {answer.status_code} {answer.text[:300]} instead of {said!r}")
        if before is not None:
            found.extend(await self._after_refusals(place, before))
        return [f"{place.method} {place.path} {place.body}: {each}" for each in found]

    async def _after_refusals(self, place: Place, before: Any) -> Iterator[str]:
        left = [] if await self.written() == before else ["what was refused left something behind"]
        answer = await self.send(place, self.body(place, place.usual))
        return iter(left if answer.status_code == 200 else [*left, f"the usual: {answer.text[:300]}"])


def _as_said(answer: httpx.Response, said: str | None) -> bool:
    if said is None:
        return answer.status_code == 200
    error = answer.json().get("error", {})
    return answer.status_code == 400 and error == {**REFUSED, "error": error["error"]} and said in error["error"]


@pytest.fixture
async def reporter(db: Database, api: Replica, run: Run) -> AsyncIterator[Reporter]:
    outside = await new_experiment(db, unmanaged=True)
    elsewhere = await new_run(db, experiment=outside)
    names = {
        "TRIAL": str(run.trial),
        "TASK": run.task,
        "ELSEWHERE": str(elsewhere.trial),
        "OUTSIDE": str(outside),
        "CHECKPOINT": new_uuid(),
    }
    async with api.client(headers=run.user_headers) as client:
        reporter = Reporter(db, client, run, names)
        checkpoint = {"uuid": names["CHECKPOINT"], "taskId": run.task, "state": "STATE_COMPLETED"}
        assert (await client.post("/api/v1/checkpoints", json=checkpoint)).status_code == 200
        yield reporter


@pytest.mark.slow
async def test_odd_reports_are_taken_or_refused_whole(reporter: Reporter) -> None:
    wrong: list[str] = []
    with capture_logs() as logs:
        for place in PLACES:
            is_first = place is FIRST[place.method, place.path]
            wrong.extend(await reporter.trouble(place, BROKEN | place.odd if is_first else place.odd))
    assert not wrong, "\n".join(wrong)
    assert [line for line in logs if line["log_level"] == "error"] == []


async def test_what_was_taken_is_read_back(reporter: Reporter) -> None:
    for value, said in VALUES.items():
        if said is None:
            for place in PLACES[:1] + tuple(place for place in PLACES if "validation" in place.body + place.path):
                await reporter.send(place, reporter.body(place, value if place.odd is VALUES else place.usual))
    for read in READS:
        answer = await reporter.client.get(reporter.named(read))
        assert answer.status_code == 200, answer.text
        assert '"error"' not in answer.text.splitlines()[-1], read


@pytest.mark.parametrize("place", PLACES[:1], ids=["metrics"])
async def test_a_body_is_json_whatever_it_is_called(reporter: Reporter, place: Place) -> None:
    for name in CONTENT_TYPES:
        answer = await reporter.send(place, reporter.body(place, place.usual), **{"content-type": name} if name else {})
        assert (answer.status_code, answer.text) == (200, "{}"), name
        refused = await reporter.send(place, b"group=training", **{"content-type": name} if name else {})
        assert refused.status_code == 400, name


async def test_bodies_that_are_none_are_refused(reporter: Reporter) -> None:
    before = await reporter.written()
    for place in FIRST.values():
        for body, said in BODIES.items():
            answer = await reporter.send(place, body)
            assert _as_said(answer, said), f"{place.method} {place.path} {body!r}: {answer.text}"
    assert await reporter.written() == before
    for path in GONE:
        answer = await reporter.client.post(reporter.named(path), json={})
        assert (answer.status_code, answer.json()["error"]["code"]) == (501, 12)


@pytest.mark.parametrize("framing", ["content-length: {more}", "transfer-encoding: chunked"])
async def test_a_body_that_ends_early_is_nothing(reporter: Reporter, api: Replica, framing: str) -> None:
    place = PLACES[0]
    before = await reporter.written()
    body = reporter.body(place, place.usual)
    with capture_logs() as logs:
        for sent in (b"", body[: len(body) // 2], body):  # a whole one, of which more was promised, is none either
            await _break_off(api.url, reporter, place, sent, framing.format(more=len(sent) + 1))
        answer = await reporter.send(place, reporter.body(place, place.usual))  # behind those, as far as they get
    assert answer.status_code == 200
    assert [line for line in logs if line["log_level"] == "error"] == []
    after = await reporter.written()
    assert (after.metrics - before.metrics, after.searcher_events) == (1, before.searcher_events)


async def _break_off(url: str, reporter: Reporter, place: Place, sent: bytes, framing: str) -> None:
    """Send a part of a request, and hang up."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    authorization = reporter.client.headers["authorization"]
    head = f"{place.method} {reporter.named(place.path)} HTTP/1.1\r\nhost: x\r\nauthorization: {authorization}\r\n"
    chunk = b"%x\r\n%b\r\n" % (len(sent), sent) if sent and "chunked" in framing else sent
    writer.write(f"{head}{framing}\r\n\r\n".encode() + chunk)
    writer.write_eof()
    await asyncio.wait_for(reader.read(), 20)
    writer.close()
