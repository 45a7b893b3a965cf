"""Answers as they are compared: status, headers that mean something, and the body byte for byte, without its moment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import httpx
from msgspec import Struct

from tests.golden.reads import Read

_PATIENCE_S: Final = 60
_SILENCE_S: Final = 1.0
"""After which a stream of an experiment that may go on is left; what came until then counts."""
_NOT_COMPARED: Final = frozenset(
    {"date", "content-length", "transfer-encoding", "connection", "set-cookie", "x-request-id"}
)
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")

OLD: Final = "2000-01-01T00:00:00Z"
"""When everything began that has not ended; the time since then has nine digits of seconds."""
_UNTIL_NOW: Final = re.compile(r'("(?:duration|wallClockTime)":)\d{9,}(?:\.\d+)?')
_MASTER: Final = re.compile(r'("master_?[iI]d":")[0-9a-f-]+')


class Answer(Struct, frozen=True):
    """``body`` is without news (see there), and with escapes for bytes that are no UTF-8."""

    read: Read
    status: int
    headers: dict[str, str]
    body: str


def answers(url: str, tokens: Mapping[str, str], reads: Iterable[Read], began: datetime) -> Iterator[Answer]:
    """What the api at ``url`` says, one read after the other; ``tokens`` by the callers of the reads."""
    with httpx.Client(base_url=url) as client:
        for read in reads:
            yield _answer(client, read, tokens[read.caller], began)


def ask(url: str, token: str, path: str) -> Any:
    """The JSON of one answer that has to be 200."""
    reply = httpx.get(url + path, headers={"Authorization": f"Bearer {token}"}, timeout=60)
    return reply.raise_for_status().json()


def _answer(client: httpx.Client, read: Read, token: str, began: datetime) -> Answer:
    timeout = httpx.Timeout(_PATIENCE_S, read=_SILENCE_S if read.streams else _PATIENCE_S)
    who = {"Authorization": f"Bearer {token}"}
    with client.stream(read.method, read.target, json=read.body, headers=who, timeout=timeout) as reply:
        body = b"".join(_until_silent(reply))
        headers = {name: value for name, value in reply.headers.items() if name not in _NOT_COMPARED}
        text = without_news(body.decode("utf-8", "backslashreplace"), began)
        return Answer(read, reply.status_code, headers, text)


def _until_silent(reply: httpx.Response) -> Iterator[bytes]:
    try:
        yield from reply.iter_bytes()
    except httpx.ReadTimeout:
        yield b"\n(goes on)"


def without_news(text: str, began: datetime) -> str:
    """``text`` without what is of the moment: ``NOW`` in place of each moment that is not before ``began``.

    ``UNTIL NOW`` stands for how long what goes on since ``OLD`` has taken, and ``MASTER`` for the id of a start.
    """

    def old(found: re.Match[str]) -> str:
        moment = datetime.fromisoformat(found[0].replace("Z", "+00:00"))
        return "NOW" if moment.astimezone(UTC) >= began else found[0]

    return _MASTER.sub(r"\1MASTER", _UNTIL_NOW.sub(r"\1UNTIL NOW", _MOMENT.sub(old, text)))
