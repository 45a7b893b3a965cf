"""Carries out the log policies of a trial when a line matches. Source: docs/reference/logs.md 7.3.

The effect is written in the transaction that stores the line, so it happens once, and before the end of the stream is
known: whoever waits for that decides with all of the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from libs.db.task_lines import add_task_line
from libs.events.logs import LogLine
from libs.loglines.message import readable
from services.logs.lines.patterns import LogPolicy, Match, Patterns

_REMEMBERED: Final = 1024
_LONGEST_QUOTE: Final = 4096

_POLICIES: Final = """
    SELECT k.task_id, k.trial_id, e.config -> 'log_policies' AS policies
    FROM trial_tasks k JOIN trials t ON t.id = k.trial_id JOIN experiments e ON e.id = t.experiment_id
    WHERE k.task_id = ANY($1)
"""
_LABEL: Final = "UPDATE trials SET log_policy_matched = $2 WHERE id = $1 AND log_policy_matched IS DISTINCT FROM $2"
_EXCLUDE: Final = """
    UPDATE trials SET blocked_nodes = blocked_nodes || to_jsonb($2::text)
    WHERE id = $1 AND NOT blocked_nodes @> to_jsonb($2::text) RETURNING id
"""
_CANCEL: Final = """
    UPDATE tasks SET cancel_retries = cancel_retries || jsonb_build_object('regex', $2::text, 'log', $3::text)
    WHERE task_id = $1 AND NOT cancel_retries @> jsonb_build_array(jsonb_build_object('regex', $2::text))
"""


class _Watched(Struct, frozen=True):
    trial_id: int
    patterns: Patterns[LogPolicy]


class LogPolicies:
    """Those of the trials whose lines pass by; they never change while a trial lives."""

    def __init__(self) -> None:
        self._known: dict[str, _Watched | None] = {}

    async def apply(self, driver: Any, lines_by_task: Mapping[str, Sequence[LogLine]], *, now: datetime) -> None:
        """Do what the policies say about new lines of tasks; what services say of a task matches nothing."""
        await self._learn(driver, lines_by_task)
        matched: list[tuple[str, _Watched, list[Match[LogPolicy]]]] = []
        for task, lines in lines_by_task.items():
            watched = self._known.get(task)
            if watched is None:
                continue
            if found := list(watched.patterns.matches([line for line in lines if line.source == "task"])):
                matched.append((task, watched, found))
        effects = _Effects(driver, now)
        # In the order in which everybody locks trials.
        for task, watched, found in sorted(matched, key=lambda item: item[1].trial_id):
            await effects.carry_out(task, watched.trial_id, found)
        while len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]

    async def _learn(self, driver: Any, tasks: Mapping[str, object]) -> None:
        unknown = [task for task in tasks if task not in self._known]
        if not unknown:
            return
        self._known.update(dict.fromkeys(unknown))
        for row in await driver.fetch(_POLICIES, unknown):
            written = msgspec.json.decode(row["policies"] or "[]") or ()
            policies = [msgspec.convert(policy, LogPolicy) for policy in written if policy.get("pattern")]
            self._known[row["task_id"]] = _Watched(row["trial_id"], Patterns(policies))


class _Effects:
    """What one transaction does about matches; each at most once, however many lines match."""

    def __init__(self, driver: Any, now: datetime) -> None:
        self._driver = driver
        self._now = now

    async def carry_out(self, task: str, trial_id: int, found: Sequence[Match[LogPolicy]]) -> None:
        labels = [match.policy.name for match in found if match.policy.name]
        if labels:
            await self._driver.execute(_LABEL, trial_id, labels[-1])
        excluded = {match.line.agent_id: match for match in reversed(found) if match.policy.action == "exclude_node"}
        for node, match in excluded.items():
            if node and await self._driver.fetchval(_EXCLUDE, trial_id, node):
                await self._say_excluded(task, node, match)
        canceling = {
            match.policy.pattern: match for match in reversed(found) if match.policy.action == "cancel_retries"
        }
        for pattern, match in canceling.items():
            await self._driver.execute(_CANCEL, task, pattern, quoted(match.line))

    async def _say_excluded(self, task: str, node: str, match: Match[LogPolicy]) -> None:
        pattern, allocation = match.policy.pattern, match.line.allocation_id or ""
        text = f"(log '{quoted(match.line)}' matched regex {pattern}) therefore will not schedule on {node}"
        await self._driver.execute("SELECT FROM allocations WHERE allocation_id = $1 FOR NO KEY UPDATE", allocation)
        await add_task_line(self._driver, task=task, allocation=allocation, text=text, now=self._now, level="ERROR")


def quoted(line: LogLine) -> str:
    """The line as text for people, and for PostgreSQL, whose text has no NUL."""
    return readable(line.log).rstrip("\n").replace("\0", "\N{REPLACEMENT CHARACTER}")[:_LONGEST_QUOTE]
