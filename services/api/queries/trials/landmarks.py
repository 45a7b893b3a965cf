"""Steps along the reports of long trials, by which a page far behind the first one is found without all before it.

Of a group with many reports every ``EVERY``-th step is remembered: so many reports come before it. That is true as long
as the summary of the group stays as it was, which no report changes that is beyond what is summarised already: the
number of the summary in rows and of its changes, or the version of the row of the trial where the summary is in its
column. A summary in rows that has changed and kept its number may have had reports folded that are behind it, or late
ones, before a landmark: how many there are tells. Reports behind the last landmark are counted whenever somebody asks.
Source: libs/db/tables/metrics.py.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from libs.errors import NotFound

EVERY: Final = 256
_FEW: Final = 8 * EVERY
"""Reports that are passed over without landmarks."""
_MOST_GROUPS: Final = 512
"""Groups of trials whose landmarks are kept; those of a million reports take 16 kB."""
_TRIES: Final = 3
FIRST_STEP: Final = -(2**31)

_VERSION: Final = "CASE WHEN t.summary_in_rows THEN g.summary_id || '.' || g.change_no ELSE t.xmin::text END"
_REPORTS: Final = "m.trial_id = $1 AND NOT m.archived AND m.kind <> 'PROFILING'"
_STANDING: Final = f"""
SELECT wanted.metric_group, {_VERSION} AS version,
       (SELECT count(*) FROM metrics m
         WHERE {_REPORTS} AND m.metric_group = wanted.metric_group AND m.total_batches >= wanted.step) AS number
  FROM trials t
 CROSS JOIN unnest($2::text[], $3::integer[]) AS wanted (metric_group, step)
  LEFT JOIN metric_groups g ON g.trial_id = t.id AND g.metric_group = wanted.metric_group
 WHERE t.id = $1
"""  # noqa: S608  (of constants)
_LANDMARKS: Final = f"""
SELECT {_VERSION} AS version,
       ARRAY(SELECT total_batches
               FROM (SELECT m.total_batches, row_number() OVER (ORDER BY m.total_batches) - 1 AS before
                       FROM metrics m
                      WHERE {_REPORTS} AND m.metric_group = $2 AND m.total_batches >= $3
                        AND (NOT t.summary_in_rows OR m.total_batches <= g.folded_step)) AS numbered
              WHERE before > 0 AND before % {EVERY} = 0
              ORDER BY before) AS steps
  FROM trials t
  LEFT JOIN metric_groups g ON g.trial_id = t.id AND g.metric_group = $2
 WHERE t.id = $1
"""  # noqa: S608  (of constants)
# Index entries alone are read.
_BEFORE: Final = f"""
SELECT {_VERSION} AS version,
       (SELECT count(*) FROM metrics m
         WHERE {_REPORTS} AND m.metric_group = $2 AND m.total_batches < $3) AS number
  FROM trials t
  LEFT JOIN metric_groups g ON g.trial_id = t.id AND g.metric_group = $2
 WHERE t.id = $1
"""  # noqa: S608  (of constants)


class ReportedGroup(Struct, frozen=True):
    """The reports of a group of a trial, of which ``EVERY`` come before the first of ``steps``, and between any two."""

    total: int
    steps: Sequence[int] = ()

    def most_before(self, step: int) -> int:
        """How many reports come before a step, or more; exact if it is one of ``steps``."""
        next_one = bisect_left(self.steps, step)
        return EVERY * (next_one + 1) if next_one < len(self.steps) else self.total

    def passed(self, step: int) -> tuple[int, int]:
        """The last of ``steps`` that is not beyond ``step``, and how many reports come before it."""
        count = bisect_right(self.steps, step)
        return (self.steps[count - 1], EVERY * count) if count else (FIRST_STEP, 0)


def step_before(groups: Sequence[ReportedGroup], others: int, position: int) -> int:
    """A step such that no more than ``position`` entries come before it in a list of all groups by step.

    others  how many other entries the list has, at whatever steps
    """

    def most_before(step: int) -> int:
        return others + sum(group.most_before(step) for group in groups)

    best = FIRST_STEP
    for group in groups:
        count = bisect_right(group.steps, position, key=most_before)
        if count:
            best = max(best, group.steps[count - 1])
    return best


class _Known(Struct, frozen=True):
    version: str
    steps: Sequence[int]


class Landmarks:
    """Those of the trials that were read last, in this process."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, str], _Known] = OrderedDict()

    async def groups(
        self, driver: Any, trial_id: int, names: Sequence[str], *, tries: int = _TRIES
    ) -> list[ReportedGroup]:
        """How many reports a trial has in groups, with landmarks where there are many, on an asyncpg connection.

        tries  how often landmarks are looked at again that were overtaken meanwhile; then it goes without
        Raises NotFound.
        """
        known = [self._known.get((trial_id, name)) if tries else None for name in names]
        last = [FIRST_STEP if one is None else one.steps[-1] for one in known]
        rows = await driver.fetch(_STANDING, trial_id, list(names), last)
        if not rows:
            raise NotFound("trial", trial_id)
        found = {name: (version, number) for name, version, number in rows}
        stale = [(name, old) for name, old in zip(names, known, strict=True) if old and old.version != found[name][0]]
        if stale:
            for name, old in stale:
                await self._look_again(driver, trial_id, name, old)
            return await self.groups(driver, trial_id, names, tries=tries - 1)
        groups = []
        for name, one in zip(names, known, strict=True):
            version, number = found[name]
            steps = () if one is None else one.steps
            total = EVERY * len(steps) + number
            if one is not None:
                self._remember(trial_id, name, one)
            if number > _FEW and tries:
                steps = await self._extended(driver, trial_id, name, version, steps)
            groups.append(ReportedGroup(total, steps))
        return groups

    async def _look_again(self, driver: Any, trial_id: int, name: str, known: _Known) -> None:
        """Forget landmarks that may not be true any more.

        As long as a summary in rows has its number, nothing is taken back: what it has can only become more.
        """
        self._known.pop((trial_id, name), None)
        number, dot, _ = known.version.partition(".")
        if not dot:
            return
        row = await driver.fetchrow(_BEFORE, trial_id, name, known.steps[-1])
        if row is None or not (row["version"] or "").startswith(f"{number}."):
            return
        if row["number"] == EVERY * len(known.steps):
            self._remember(trial_id, name, _Known(row["version"], known.steps))

    async def _extended(
        self, driver: Any, trial_id: int, name: str, version: str | None, steps: Sequence[int]
    ) -> Sequence[int]:
        """``steps`` with those behind them, of a group as it was a moment ago; without if it has changed since."""
        row = await driver.fetchrow(_LANDMARKS, trial_id, name, steps[-1] if steps else FIRST_STEP)
        if row is None or version is None or row["version"] != version or not row["steps"]:
            return steps
        extended = array("i", [*steps, *row["steps"]])
        self._remember(trial_id, name, _Known(version, extended))
        return extended

    def _remember(self, trial_id: int, name: str, known: _Known) -> None:
        self._known[trial_id, name] = known
        self._known.move_to_end((trial_id, name))
        while len(self._known) > _MOST_GROUPS:
            self._known.popitem(last=False)
