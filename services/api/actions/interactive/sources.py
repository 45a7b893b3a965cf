"""What a TensorBoard is to show: the experiments and trials that a request names, or those that pass its filters.

Source: docs/reference/tasks-and-cli.md 3 (TensorBoard).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from msgspec import UNSET
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.tables.experiments import experiments
from libs.db.tables.trials import trials
from libs.errors import InvalidRequest, NotFound
from libs.tasks.interactive.tensorboard_sources import TensorboardSource
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.actions.experiments.bulk import ANY_PROJECT, select_ids
from services.api.wire.interactive.tensorboards import LaunchTensorboardRequest


def check_names_something(request: LaunchTensorboardRequest) -> None:
    """Raise InvalidRequest for a TensorBoard of nothing."""
    if not request.experiment_ids and not request.trial_ids and request.filters is UNSET:
        raise InvalidRequest("must set experiment, trial ids, or filters")


async def load_sources(
    connection: AsyncConnection, request: LaunchTensorboardRequest, rights: UserRights
) -> list[TensorboardSource]:
    """By ascending experiment. Raises NotFound for what does not exist, InvalidRequest when nothing is left.

    Filters find what the caller may read; of what is named, that was asked before. Trials narrow their experiment to
    themselves, also where it is named as a whole.
    """
    wanted = list(request.experiment_ids)
    if request.filters is not UNSET:
        readable = rights.where_project(Action.VIEW_ARTIFACTS, experiments.c.project_id)
        wanted = await select_ids(connection, request.filters, "tensorboard", ANY_PROJECT, readable)
    of_trials = await _trials_by_experiment(connection, request.trial_ids)
    ids = sorted({*wanted, *of_trials})
    if not ids:
        raise InvalidRequest("no experiments found")
    configs = await _configs(connection, ids)
    return [
        TensorboardSource(experiment_id=ident, config=configs[ident], trial_ids=tuple(of_trials.get(ident, ())))
        for ident in ids
    ]


async def _trials_by_experiment(connection: AsyncConnection, trial_ids: Sequence[int]) -> dict[int, list[int]]:
    query = select(trials.c.id, trials.c.experiment_id).where(any_of(trials.c.id, trial_ids))
    found = {row.id: row.experiment_id for row in await connection.execute(query)} if trial_ids else {}
    grouped: defaultdict[int, list[int]] = defaultdict(list)
    for trial_id in dict.fromkeys(trial_ids):
        if trial_id not in found:
            raise NotFound("trial", trial_id)
        grouped[found[trial_id]].append(trial_id)
    return dict(grouped)


async def _configs(connection: AsyncConnection, ids: Sequence[int]) -> dict[int, Any]:
    query = select(experiments.c.id, experiments.c.config).where(any_of(experiments.c.id, ids))
    found = {row.id: row.config for row in await connection.execute(query)}
    if missing := [ident for ident in ids if ident not in found]:
        raise NotFound("experiment", missing[0])
    return found
