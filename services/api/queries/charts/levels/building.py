"""Makes levels of a series up to date, when somebody has asked for one that is long.

All reports up to some step are sealed: nobody is writing one any more, and whoever wants to from then on, or takes one
back, forgets what was made of them, which gives the group another generation. So chunks are made without any lock, and
stored if the generation is still the one of before. Whoever is killed in between leaves chunks that are right, and
fewer of them; of two who make the same ones, either's stay.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from msgspec import Struct

from libs.db.connecting.settings import IMPORT_APPLICATION
from services.api.queries.charts.groups import key_of
from services.api.queries.charts.levels import statements as sql
from services.api.queries.charts.levels.packing import STORED, PackedChunk, Shape, pack
from services.api.queries.charts.time_series.packages import numbers_in

_CHUNKS_AT_ONCE: Final = 20
_TRIES: Final = 20
_PAUSE_S: Final = 0.005


class Sealed(Struct, frozen=True):
    """How far the reports of a group are sealed, and of which generation its levels are."""

    generation: int
    step: int


async def seal(driver: Any, trial_id: int, group: str) -> Sealed | None:
    """Seal the reports that a group has now; None when it has none, or others write them all the time, or import."""
    for _ in range(_TRIES):
        async with driver.transaction():
            if await driver.fetchval(sql.LOCK_TRIAL, trial_id) and await driver.fetchval(sql.LOCK_SUMMARY, trial_id):
                row = await driver.fetchrow(sql.SEAL, trial_id, group, IMPORT_APPLICATION)
                return None if row is None else Sealed(*row)
        await asyncio.sleep(_PAUSE_S)
    return None


async def add_chunks(
    driver: Any, trial_id: int, group: str, name: str, sealed: Sealed, *, shape: Shape = STORED
) -> bool:
    """Make the chunks that a series lacks up to where it is sealed; returns whether they are right still."""
    key = key_of(group)
    number, newest = await driver.fetchrow(sql.NEXT_CHUNK, trial_id, group, name)
    most = _CHUNKS_AT_ONCE * shape.chunk
    steps: list[int] = []
    numbers: list[float | None] = []
    while newest < sealed.step:
        count, last, more, text = await driver.fetchrow(
            sql.NEXT_POINTS, trial_id, group, key, name, newest, sealed.step, most
        )
        if more:
            steps += more
            numbers += numbers_in(text)
        whole = len(steps) // shape.chunk * shape.chunk
        if whole:
            chunks = [await _pack(steps, numbers, start, shape) for start in range(0, whole, shape.chunk)]
            chunk_numbers = list(range(number, number + len(chunks)))
            fields = map(list, zip(*chunks, strict=True))
            stored = await driver.fetchval(
                sql.STORE_CHUNKS, trial_id, group, name, sealed.generation, chunk_numbers, *fields
            )
            if not stored:
                return False
            number += len(chunks)
            del steps[:whole], numbers[:whole]
        if count < most:
            break
        newest = last
    return True


async def _pack(steps: list[int], numbers: list[float | None], start: int, shape: Shape) -> PackedChunk:
    await asyncio.sleep(0)  # others have their turn between two chunks
    part = slice(start, start + shape.chunk)
    return pack(steps[part], numbers[part], shape)
