"""Streams of charts: look again and again until the experiments have ended, then once more.

The clock alone says when: whatever happens to the bus, a chart goes on. Source: docs/reference/experiments.md 9.6.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from msgspec import Struct
from sqlalchemy import select

from libs.db.any_of import any_of
from libs.db.engine import Database
from libs.db.tables.experiments import experiments
from libs.errors import InvalidRequest, NotFound
from libs.states.experiment import LIVE, ExperimentState
from services.api.queries.prepared import PreparedQuery, one_of_hidden

DEFAULT_PERIOD_S: Final = 30
LOOK_FOR_THE_END_S: Final = 2.0
"""A chart is complete soon after its experiment has ended, however long its period is."""
_GO_ON: Final = sorted({*LIVE, ExperimentState.RUNNING})


async def follow(
    db: Database,
    experiment_ids: Sequence[int],
    look: Callable[[], AsyncIterator[Sequence[Struct]]],
    *,
    period_s: int,
) -> AsyncIterator[Sequence[Struct]]:
    """What ``look`` has to say, every ``period_s`` seconds (0: the default) until none of the experiments goes on.

    Raises NotFound for an experiment that is not there when it begins, InvalidRequest for a negative period.
    """
    if period_s < 0:
        raise InvalidRequest("periodSeconds: must not be negative")
    # Before looking: everything reported up to the end is seen then.
    goes_on = await _states(db, experiment_ids)
    for experiment_id in experiment_ids:
        if experiment_id not in goes_on:
            raise NotFound("experiment", experiment_id)
    ended = not any(goes_on.values())
    while True:
        async for batch in look():
            yield batch
        if ended:
            return
        await _pause(db, experiment_ids, period_s or DEFAULT_PERIOD_S)
        ended = await _have_ended(db, experiment_ids)


async def _pause(db: Database, experiment_ids: Sequence[int], period_s: float) -> None:
    left_s = period_s
    while left_s > 0:
        await asyncio.sleep(min(left_s, LOOK_FOR_THE_END_S))
        left_s -= LOOK_FOR_THE_END_S
        if left_s > 0 and await _have_ended(db, experiment_ids):
            return


async def _have_ended(db: Database, experiment_ids: Sequence[int]) -> bool:
    """Whether none goes on; one that was deleted does not."""
    return not any((await _states(db, experiment_ids)).values())


async def _states(db: Database, experiment_ids: Sequence[int]) -> dict[int, bool]:
    """Whether each experiment goes on; those that are not there are absent."""
    async with db.read_prepared() as connection:
        rows = await _GOES_ON_BY_ID.records(connection, ids=experiment_ids)
    return {row["id"]: row["goes_on"] for row in rows}


_GOES_ON_BY_ID: Final = PreparedQuery(
    select(experiments.c.id, any_of(experiments.c.state, _GO_ON).label("goes_on")).where(
        one_of_hidden(experiments.c.id, "ids")
    )
)
