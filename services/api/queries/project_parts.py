"""What all experiments of a project have, put together of what was read of its parts: only those that have changed are
read anew, and where none has, nothing is put together.

The database says how often each part has changed (``project_changes``, libs/db/tables/experiments.py), as of the
snapshot in which the part is read. In the parts of trials with a mark, whose reports may be in none of the columns,
there are changes that it does not count: these are read each time.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping
from sys import getsizeof
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct, field
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import DriverConnection, driver_connection
from libs.db.tables.experiments import PART_BITS

Value = TypeVar("Value", bound=Collection[Any])

MOST_KEPT: Final = 64 << 20
"""Bytes that are kept in all, about; a part with a tenth of them is read each time."""
_OF_NAME: Final = 150
"""Bytes of what belongs to a name, about."""
MOST_ONE_BY_ONE: Final = 8
"""Parts that are read one by one where all of them may be read at once."""
_WHOLE: Final = -1
"""Stands among parts for all of them but those with marks."""


def _changes(whose: str) -> str:
    return f"""
SELECT coalesce(sum(number), 0)::bigint AS number, '{{}}'::bigint[] AS marked
  FROM project_changes WHERE {whose}"""  # noqa: S608  (of constants)


def _changes_without_marks(whose: str) -> str:
    return f"""
WITH marked AS MATERIALIZED (
     SELECT DISTINCT t.experiment_id >> {PART_BITS} AS part
       FROM metric_marks mark
       JOIN trials t ON t.id = mark.trial_id AND t.summary_in_rows
      WHERE t.{whose})
SELECT coalesce(sum(number), 0)::bigint AS number, ARRAY(SELECT part FROM marked ORDER BY part) AS marked
  FROM project_changes WHERE {whose} AND part NOT IN (SELECT part FROM marked)"""  # noqa: S608  (of constants)


def _parts(whose: str) -> str:
    return f"SELECT part, sum(number)::bigint AS number FROM project_changes WHERE {whose} GROUP BY part ORDER BY part"  # noqa: S608


_OF_PROJECT: Final = "project_id = $1"
_OF_ALL: Final = "project_id <> $1"
_CHANGES: Final = {of: (_changes(of), _changes_without_marks(of), _parts(of)) for of in (_OF_PROJECT, _OF_ALL)}


class Part(Struct, frozen=True):
    """Experiments of a project, or of all for 0, with ids from ``first`` on and before ``end``."""

    project_id: int
    first: int
    end: int

    @classmethod
    def numbered(cls, project_id: int, number: int) -> Part:
        first = number << PART_BITS
        return cls(project_id, first, first + (1 << PART_BITS))


class PartReader(Struct, Generic[Value], frozen=True):
    """What is read of parts.

    what        names it; values of different ones are kept apart, and are not to be changed
    empty       makes the value of no part
    add         adds the second value to the first
    of_reports  it comes from what trials have reported
    read_all    reads all parts of a project at once, by their numbers; those without anything may be missing, and those
                with marks may be wrong
    is_small    whether reading so much at once takes no longer than one part by itself
    """

    what: str
    read: Callable[[AsyncConnection, Part], Awaitable[Value]]
    empty: Callable[[], Value]
    add: Callable[[Value, Value], object]
    of_reports: bool = False
    read_all: Callable[[AsyncConnection, int], Awaitable[Mapping[int, Value]]] | None = None
    is_small: Callable[[Value], bool] = lambda _: False


class _Kept(Struct, frozen=True):
    """``number`` of changes, and the parts that were ``left_out``, when the value was read."""

    number: int
    value: Any
    size: int
    left_out: list[int]


class _Project(Struct):
    kept: dict[int, _Kept] = field(default_factory=dict)
    size: int = 0


class ProjectParts:
    """What was read of parts of projects, in this process."""

    def __init__(self) -> None:
        self._projects: OrderedDict[tuple[str, int], _Project] = OrderedDict()
        self._size = 0

    async def of_project(self, connection: AsyncConnection, project_id: int, reading: PartReader[Value]) -> Value:
        """What is read of all parts of a project, or of all for 0, of one snapshot, added up; not to be changed.

        Those of many parts are never in memory together, unless they are kept.
        """
        driver = await driver_connection(connection)
        number, marked = await _number(driver, project_id, reading)
        known = self._known(project_id, reading, number, marked)
        if known is not None and not marked:
            return known
        async with driver.transaction(isolation="repeatable_read", readonly=True):
            number, marked = await _number(driver, project_id, reading)
            known = self._known(project_id, reading, number, marked)
            if known is None:
                known = await self._add_up(connection, driver, project_id, reading, marked)
                self._keep(project_id, reading, _WHOLE, _kept(reading, number, known, marked))
            if not marked:
                return known
            present = reading.empty()
            reading.add(present, known)
            for part in marked:
                reading.add(present, await reading.read(connection, Part.numbered(project_id, part)))
            return present

    def _known(self, project_id: int, reading: PartReader[Value], number: int, left_out: list[int]) -> Value | None:
        whole = self._get(project_id, reading, _WHOLE)
        if whole is None or whole.number != number or whole.left_out != left_out:
            return None
        self._projects.move_to_end((reading.what, project_id))
        value: Value = whole.value
        return value

    async def _add_up(
        self,
        connection: AsyncConnection,
        driver: DriverConnection,
        project_id: int,
        reading: PartReader[Value],
        left_out: Collection[int],
    ) -> Value:
        whole = reading.empty()
        *_, statement = _CHANGES[_OF_PROJECT if project_id else _OF_ALL]
        numbers = {part: number for part, number in await driver.fetch(statement, project_id) if part not in left_out}
        at_once = await self._read_at_once(connection, project_id, reading, numbers)
        for part, number in numbers.items():
            kept = self._get(project_id, reading, part)
            if kept is not None and kept.number == number:
                reading.add(whole, kept.value)
                await asyncio.sleep(0)  # others have their turn between two parts
                continue
            if at_once is None:
                value = await reading.read(connection, Part.numbered(project_id, part))
            else:
                value = at_once.get(part, reading.empty())
            reading.add(whole, value)
            self._keep(project_id, reading, part, _kept(reading, number, value))
        return whole

    async def _read_at_once(
        self, connection: AsyncConnection, project_id: int, reading: PartReader[Value], numbers: Mapping[int, int]
    ) -> Mapping[int, Value] | None:
        """All parts, where so many have changed that one by one would take longer."""
        if reading.read_all is None:
            return None
        known = ((self._get(project_id, reading, part), number) for part, number in numbers.items())
        changed = sum(kept is None or kept.number != number for kept, number in known)
        whole = self._get(project_id, reading, _WHOLE)
        most = 0 if whole is None or reading.is_small(whole.value) else MOST_ONE_BY_ONE
        return await reading.read_all(connection, project_id) if changed > most else None

    def _get(self, project_id: int, reading: PartReader[Any], part: int) -> _Kept | None:
        project = self._projects.get((reading.what, project_id))
        return None if project is None else project.kept.get(part)

    def _keep(self, project_id: int, reading: PartReader[Any], part: int, kept: _Kept) -> None:
        key, size = (reading.what, project_id), kept.size
        project = self._projects.get(key, _Project())
        if (before := project.kept.pop(part, None)) is not None:
            project.size -= before.size
            self._size -= before.size
        if size > MOST_KEPT // 10 or project.size + size > MOST_KEPT:
            return
        project.kept[part] = kept
        project.size += size
        self._size += size
        self._projects[key] = project
        self._projects.move_to_end(key)
        while self._size > MOST_KEPT:
            self._size -= self._projects.popitem(last=False)[1].size


async def _number(driver: DriverConnection, project_id: int, reading: PartReader[Any]) -> tuple[int, list[int]]:
    """How often all parts have changed, but for those with marks, and the numbers of these."""
    of_all, without_marks, _ = _CHANGES[_OF_PROJECT if project_id else _OF_ALL]
    ((number, marked),) = await driver.fetch(without_marks if reading.of_reports else of_all, project_id)
    return number, marked


def _kept(reading: PartReader[Any], number: int, names: Collection[Any], left_out: list[int] | None = None) -> _Kept:
    """With its size in bytes, about."""
    parts = (part for name in names for part in (name if isinstance(name, tuple) else (name,)))
    size = getsizeof(reading.what) + _OF_NAME * (1 + len(names)) + sum(map(getsizeof, parts))
    return _Kept(number, names, size, left_out or [])
