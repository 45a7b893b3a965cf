"""What webhooks are told of an experiment, read from its rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config.stored import count_in, part, text_in
from libs.db.any_of import any_of
from libs.db.tables.experiments import experiments
from libs.db.tables.workspaces import projects, workspaces
from libs.webhooks.events import ExperimentFacts
from libs.webhooks.scope import EventOrigin, integration_of


class KnownExperiment(Struct, frozen=True, kw_only=True):
    id: int
    state: str
    config: Mapping[str, Any]
    start_time: datetime
    end_time: datetime | None
    workspace_id: int
    workspace: str
    project: str

    @property
    def origin(self) -> EventOrigin:
        return EventOrigin(workspace_id=self.workspace_id, integration=integration_of(self.config))

    def facts(self, *, now: datetime, state: str | None = None, trial_id: int | None = None) -> ExperimentFacts:
        """As of ``now``; ``state`` where the event knows better than the row, which may have changed since."""
        resources = part(self.config, "resources")
        ended = self.end_time if self.end_time is not None and self.end_time <= now else now
        return ExperimentFacts(
            id=self.id,
            state=state or self.state,
            name=str(self.config.get("name") or ""),
            duration=max(0, int((ended - self.start_time).total_seconds())),
            resource_pool=text_in(resources, "resource_pool"),
            slots_per_trial=count_in(resources, "slots_per_trial") or 0,
            workspace=self.workspace,
            project=self.project,
            trial_id=trial_id,
        )


async def load_experiments(connection: AsyncConnection, ids: Collection[int]) -> dict[int, KnownExperiment]:
    """Those that are there, by id."""
    if not ids:
        return {}
    query = (
        select(
            experiments.c.id,
            experiments.c.state,
            experiments.c.config,
            experiments.c.start_time,
            experiments.c.end_time,
            projects.c.workspace_id,
            workspaces.c.name.label("workspace"),
            projects.c.name.label("project"),
        )
        .select_from(experiments)
        .join(projects, projects.c.id == experiments.c.project_id)
        .join(workspaces, workspaces.c.id == projects.c.workspace_id)
        .where(any_of(experiments.c.id, sorted(ids)))
    )
    return {row.id: KnownExperiment(**row._mapping) for row in await connection.execute(query)}
