"""Completes public events: an event shows the whole object after the change, whatever its announcer knew of it.

Whoever changes a state has rarely read the owner's name or the place in the queue. What such an event lacks is read
from the rows of its object, by one query for all events of a kind. Events that lack nothing cost no query, and those of
objects that are gone stay as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, Select, Text, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import jobs
from libs.db.tables.trials import trial_tasks, trials
from libs.db.tables.users import users
from libs.db.tables.workspaces import projects, workspaces
from libs.events.changes import (
    ExperimentChanged,
    JobChanged,
    PublicEvent,
    TrialChanged,
    UserChanged,
    WorkspaceChanged,
)


@dataclass(frozen=True, eq=False)
class _Source:
    """Rows that events of a kind are completed from.

    ident    field of the event that names the row
    key      the column that it is compared with
    fields   a column for each field that can be completed
    always   fields that every object has; an event without one of them is completed
    """

    ident: str
    key: ColumnElement[Any]
    fields: Select[Any]
    always: tuple[str, ...]

    def lacks_something(self, event: Struct) -> bool:
        return any(getattr(event, field) in ("", None) for field in self.always)


_newest_task: Final[ColumnElement[Any]] = (
    select(trial_tasks.c.task_id)
    .where(trial_tasks.c.trial_id == trials.c.id)
    .order_by(trial_tasks.c.position.desc())
    .limit(1)
    .correlate(trials)
    .scalar_subquery()
)
_EXPERIMENTS: Final = _Source(
    ident="experiment_id",
    key=experiments.c.id,
    fields=select(
        experiments.c.state,
        func.coalesce(func.jsonb_extract_path_text(experiments.c.config, "name", type_=Text), "").label("name"),
        experiments.c.job_id,
        users.c.username.label("owner"),
        experiments.c.project_id,
        experiments.c.progress,
    ).join(users, users.c.id == experiments.c.owner_id),
    always=("state", "job_id", "owner", "project_id"),
)
_TRIALS: Final = _Source(
    ident="trial_id",
    key=trials.c.id,
    fields=select(trials.c.state, trials.c.restarts, func.coalesce(_newest_task, "").label("task_id")),
    always=("state", "task_id"),
)
_JOBS: Final = _Source(
    ident="job_id",
    key=jobs.c.job_id,
    fields=select(jobs.c.pool, jobs.c.priority, jobs.c.weight),
    always=("pool", "weight"),
)
_WORKSPACES: Final = _Source(
    ident="workspace_id", key=workspaces.c.id, fields=select(workspaces.c.name), always=("name",)
)
_PROJECTS: Final = _Source(ident="project_id", key=projects.c.id, fields=select(projects.c.name), always=("name",))
_USERS: Final = _Source(ident="user_id", key=users.c.id, fields=select(users.c.username), always=("username",))
_SOURCES: Final[Mapping[type[Struct], _Source]] = {
    ExperimentChanged: _EXPERIMENTS,
    TrialChanged: _TRIALS,
    JobChanged: _JOBS,
    UserChanged: _USERS,
}


async def completed(connection: AsyncConnection, events: Sequence[PublicEvent]) -> list[PublicEvent]:
    """The events, in their order, each with the fields of its object that it lacked."""
    lacking = defaultdict[_Source, list[int]](list)
    for position, event in enumerate(events):
        source = _source_of(event)
        if source is not None and source.lacks_something(event):
            lacking[source].append(position)
    found = list(events)
    for source, positions in lacking.items():
        rows = await _rows(connection, source, {getattr(events[position], source.ident) for position in positions})
        for position in positions:
            row = rows.get(getattr(events[position], source.ident))
            if row is not None:
                found[position] = _with_fields_of(events[position], row)
    return found


def _source_of(event: PublicEvent) -> _Source | None:
    if isinstance(event, WorkspaceChanged):
        return _WORKSPACES if event.project_id is None else _PROJECTS
    return _SOURCES.get(type(event))


async def _rows(
    connection: AsyncConnection, source: _Source, idents: Collection[Any]
) -> Mapping[Any, Mapping[str, Any]]:
    query = source.fields.add_columns(source.key.label("ident")).where(any_of(source.key, idents))
    rows = [dict(row) for row in (await connection.execute(query)).mappings()]
    return {row.pop("ident"): row for row in rows}


def _with_fields_of(event: PublicEvent, row: Mapping[str, Any]) -> PublicEvent:
    """What the event says itself is newer than the row where the announcer has yet to write it."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(event)}
    lacking = {name: value for name, value in row.items() if getattr(event, name) == defaults[name]}
    return msgspec.structs.replace(event, **lacking)
