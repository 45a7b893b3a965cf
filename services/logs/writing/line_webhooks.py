"""Tells webhooks of lines that match their triggers. Source: docs/reference/logs.md 8.

Deliveries are written in the transaction that stores the line: a webhook hears of a task once, and never of a line that
nobody can read. Lines are of all kinds of tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from libs.events.logs import LogLine
from libs.webhooks.deliveries import enqueue_deliveries
from libs.webhooks.events import NewDelivery, Once, TaskLogFacts, TriggerType, WebhookEvent, event_id
from libs.webhooks.scope import EventOrigin, WebhookScope, hears, integration_of
from services.logs.lines.patterns import Match, Patterns
from services.logs.writing.policy_effects import quoted

_TRIGGERS: Final = """
    SELECT t.id, t.webhook_id, t.condition ->> 'regex' AS regex, w.name, w.mode, w.workspace_id
    FROM webhook_triggers t JOIN webhooks w ON w.id = t.webhook_id
    WHERE t.trigger_type = 'TASK_LOG' ORDER BY t.id
"""
_TASKS: Final = """
    SELECT k.task_id, k.task_type, coalesce(p.workspace_id, k.workspace_id) AS workspace_id,
        e.id AS experiment_id, r.trial_id, e.config -> 'integrations' AS integrations
    FROM tasks k
    LEFT JOIN trial_tasks r ON r.task_id = k.task_id
    LEFT JOIN trials t ON t.id = r.trial_id
    LEFT JOIN experiments e ON e.id = coalesce(t.experiment_id, k.experiment_id)
    LEFT JOIN projects p ON p.id = e.project_id
    WHERE k.task_id = ANY($1)
"""
_FIRED: Final = "SELECT trigger_id, key FROM webhook_fired_triggers WHERE key = ANY($1)"


class LineTrigger(Struct, frozen=True, kw_only=True):
    """A trigger of type TASK_LOG."""

    id: int
    pattern: str
    webhook: WebhookScope


class LogWebhooks:
    """Triggers are read for each transaction, and compiled when they have changed."""

    def __init__(self) -> None:
        self._triggers: tuple[LineTrigger, ...] = ()
        self._patterns: Patterns[LineTrigger] = Patterns(())

    async def apply(self, driver: Any, lines_by_task: Mapping[str, Sequence[LogLine]], *, now: datetime) -> None:
        """Write what webhooks are to be told of new lines of tasks."""
        triggers = tuple(map(_trigger, await driver.fetch(_TRIGGERS)))
        if triggers != self._triggers:
            self._triggers, self._patterns = triggers, Patterns(triggers)
        if not triggers:
            return
        found: dict[str, list[Match[LineTrigger]]] = {}
        for task, lines in lines_by_task.items():
            if matches := list(self._patterns.matches([line for line in lines if line.source == "task"])):
                found[task] = matches
        if found:
            await enqueue_deliveries(driver, await _deliveries(driver, found, now))


def _trigger(row: Any) -> LineTrigger:
    webhook = WebhookScope(id=row["webhook_id"], name=row["name"], mode=row["mode"], workspace_id=row["workspace_id"])
    return LineTrigger(id=row["id"], pattern=row["regex"] or "", webhook=webhook)


async def _deliveries(
    driver: Any, found: Mapping[str, Sequence[Match[LineTrigger]]], now: datetime
) -> list[NewDelivery]:
    """For each task the first line that each trigger finds, unless that has found one before."""
    fired = {(row["trigger_id"], row["key"]) for row in await driver.fetch(_FIRED, sorted(found))}
    deliveries = []
    for row in await driver.fetch(_TASKS, sorted(found)):
        task, origin = row["task_id"], _origin(row)
        first = {match.policy.id: match for match in reversed(found[task])}
        for ident, match in sorted(first.items()):
            if (ident, task) not in fired and hears(match.policy.webhook, origin):
                once = Once(trigger_id=ident, key=task)
                deliveries.append(NewDelivery(match.policy.webhook.id, _event(row, match, now), once))
    return deliveries


def _origin(row: Any) -> EventOrigin:
    if row["experiment_id"] is None:
        return EventOrigin(workspace_id=row["workspace_id"])
    said = row["integrations"]
    config = {"integrations": None if said is None else msgspec.json.decode(said)}
    return EventOrigin(workspace_id=row["workspace_id"], integration=integration_of(config))


def _event(row: Any, match: Match[LineTrigger], now: datetime) -> WebhookEvent:
    facts = TaskLogFacts(
        task_id=row["task_id"],
        node_name=match.line.agent_id or "",
        triggering_log=quoted(match.line),
        task_type=row["task_type"],
        experiment_id=row["experiment_id"],
        trial_id=row["trial_id"],
    )
    return WebhookEvent(
        event_id=event_id(match.policy.id, row["task_id"]),
        event_type=TriggerType.TASK_LOG,
        timestamp=int(now.timestamp()),
        condition={"regex": match.policy.pattern},
        task_log=facts,
    )
