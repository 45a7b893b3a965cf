"""Answers what others of the control plane ask the launcher of a pool (``libs/events``)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from libs.bus import Bus, CoreMessage
from libs.errors import InvalidRequest, Unimplemented
from libs.events.subjects import launcher_rpcs

Verbs: TypeAlias = Mapping[str, tuple[type[Struct], Callable[[Any], Awaitable[Struct]]]]
"""Verb -> what is sent with it, and what answers it. Answers raise ``libs/errors.py`` only."""


@asynccontextmanager
async def serve_rpcs(bus: Bus, *, pool: str, verbs: Verbs) -> AsyncIterator[None]:
    """Answer while the block runs; of several launchers of a pool, one does."""

    async def answer(message: CoreMessage) -> bytes:
        verb = message.subject.rpartition(".")[2]
        known = verbs.get(verb)
        if known is None:
            raise Unimplemented(f"launchers cannot be asked to {verb}")
        kind, do = known
        try:
            asked = msgspec.json.decode(message.data, type=kind)
        except msgspec.DecodeError as error:
            raise InvalidRequest(f"{verb}: {error}") from error
        return msgspec.json.encode(await do(asked))

    async with bus.serve(launcher_rpcs(pool), answer, queue="launcher"):
        yield
