"""What all experiments of a project have, put together of what was read of its parts: only those that have changed are
read anew.

The database says how often each part has changed (``project_changes``, libs/db/tables/experiments.py), as of the
snapshot in which the part is read. In the parts of trials with a mark, whose reports may be in none of the columns,
there are changes that it does not count: these are read each time.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from sys import getsizeof
from typing import Any, Final, TypeVar

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import driver_connection
from libs.db.tables.experiments import PART_BITS

Value = TypeVar("Value", bound=Collection[Any])

MOST_KEPT: Final = 64 << 20
"""Bytes that are kept in all, about; a part with a tenth of them is read each time."""
_OF_NAME: Final = 150
"""Bytes of what belongs to a name, about."""


def _parts(whose: str) -> str:
    return f"""
SELECT part, number, part IN (
         SELECT t.experiment_id >> {PART_BITS}
           FROM metric_marks mark
           JOIN trials t ON t.id = mark.trial_id AND t.summary_in_rows
          WHERE t.{whose}) AS is_marked
  FROM (SELECT part, sum(number)::bigint AS number FROM project_changes WHERE {whose} GROUP BY part) AS known
 ORDER BY part"""  # noqa: S608  (of constants)


_OF_PROJECT: Final = _parts("project_id = $1")
_OF_ALL: Final = _parts("project_id <> $1")


class Part(Struct, frozen=True):
    """Experiments of a project, or of all for 0, with ids from ``first`` on and before ``end``."""

    project_id: int
    first: int
    end: int


class _Kept(Struct, frozen=True):
    number: int
    value: Any
    size: int


class ProjectParts:
    """What was read of parts of projects, in this process."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, int], _Kept] = OrderedDict()
        self._size = 0

    async def of_project(
        self,
        connection: AsyncConnection,
        project_id: int,
        what: str,
        read: Callable[[AsyncConnection, Part], Awaitable[Value]],
        add: Callable[[Value], object],
        *,
        of_reports: bool = False,
    ) -> None:
        """Give ``add`` what ``read`` returns of each part of a project, or of all for 0, of one snapshot.

        what        names what is read; values of different ones are kept apart, and are not to be changed
        add         takes one part after the other: those of many are never in memory together, unless they are kept
        of_reports  it comes from what trials have reported
        """
        driver = await driver_connection(connection)
        async with driver.transaction(isolation="repeatable_read", readonly=True):
            for part, number, is_marked in await driver.fetch(_OF_PROJECT if project_id else _OF_ALL, project_id):
                key = what, project_id, part
                kept = self._kept.get(key)
                is_behind = of_reports and is_marked
                if kept is not None and kept.number == number and not is_behind:
                    self._kept.move_to_end(key)
                    add(kept.value)
                    await asyncio.sleep(0)  # others have their turn between two parts
                    continue
                first = part << PART_BITS
                value = await read(connection, Part(project_id, first, first + (1 << PART_BITS)))
                add(value)
                if not is_behind:
                    self._keep(key, _Kept(number, value, _size_of(key, value)))

    def _keep(self, key: tuple[str, int, int], kept: _Kept) -> None:
        if (before := self._kept.pop(key, None)) is not None:
            self._size -= before.size
        if kept.size > MOST_KEPT // 10:
            return
        self._kept[key] = kept
        self._size += kept.size
        while self._size > MOST_KEPT:
            self._size -= self._kept.popitem(last=False)[1].size


def _size_of(key: tuple[str, int, int], names: Collection[Any]) -> int:
    """Bytes, about."""
    parts = (part for name in names for part in (name if isinstance(name, tuple) else (name,)))
    return getsizeof(key[0]) + _OF_NAME * (1 + len(names)) + sum(map(getsizeof, parts))
