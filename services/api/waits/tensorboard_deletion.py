"""Waits until the TensorBoard files of an experiment are deleted: ``det e delete-tb-files`` says that they are."""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Struct
from sqlalchemy import exists, literal, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.bus import Bus
from libs.db.engine import Database
from libs.db.tables.checkpoints import checkpoint_gc_requests as requests
from libs.db.tables.tasks import allocations, tasks
from libs.errors import FailedPrecondition, Unavailable
from libs.states.allocation import AllocationState, at_least
from libs.waiting import wait_until_set
from services.api.waits.notifier import Notifier, allocation_topic
from services.api.waits.scheduler import wait_until_reconciled

LONGEST_S: Final = 45.0
"""Less than the 60 seconds after which the usual proxies give a request up."""
UNHEARD_S: Final = 3.0
"""How long a request waits for a scheduler; one that stands by takes over in less."""
UNTAKEN_S: Final = 10.0
"""How long it waits until the launcher of the pool has seen its task."""
LOOK_S: Final = 0.5

_OF_TENSORBOARD: Final = tasks.c.spec["argv"].contains(literal(["--delete-tensorboards"], JSONB))


class TensorboardDeletion(Struct, frozen=True, kw_only=True):
    is_requested: bool
    """The scheduler has not made a task of it yet."""
    task_id: str | None = None
    """Newest task that deletes, or has deleted, such files of the experiment."""
    allocation_id: str | None = None
    is_taken_up: bool = False
    """A launcher has seen that task."""
    is_over: bool = True
    failure: str | None = None
    """Why that task did not delete them."""

    @property
    def is_under_way(self) -> bool:
        return self.is_requested or not self.is_over


async def tensorboard_deletion(connection: AsyncConnection, experiment_id: int) -> TensorboardDeletion:
    """Requests are read first: the scheduler makes tasks of them in the transaction that removes them."""
    asked = exists().where(requests.c.experiment_id == experiment_id, requests.c.delete_tensorboards)
    is_requested = bool(await connection.scalar(select(asked)))
    columns = allocations.c
    newest = (
        select(
            columns.task_id,
            columns.allocation_id,
            columns.state,
            columns.released_at,
            columns.stopped_early,
            columns.exit_reason,
        )
        .join(tasks, tasks.c.task_id == columns.task_id)
        .where(tasks.c.experiment_id == experiment_id, tasks.c.task_type == "CHECKPOINT_GC", _OF_TENSORBOARD)
        .order_by(columns.requested_at.desc())
        .limit(1)
    )
    row = (await connection.execute(newest)).one_or_none()
    if row is None:
        return TensorboardDeletion(is_requested=is_requested)
    is_over = row.released_at is not None
    failed = is_over and not row.stopped_early
    return TensorboardDeletion(
        is_requested=is_requested,
        task_id=row.task_id,
        allocation_id=row.allocation_id,
        is_taken_up=at_least(AllocationState(row.state), AllocationState.PULLING),
        is_over=is_over,
        failure=(row.exit_reason or "it ended without a reason") if failed else None,
    )


async def wait_until_deleted(
    db: Database, bus: Bus, notifier: Notifier, experiment_id: int, *, earlier: TensorboardDeletion
) -> None:
    """Return when the files are gone, or when no scheduler or launcher takes the request up, which stays stored.

    earlier  how it was before the request: an earlier task that has failed says nothing about this request
    Raises FailedPrecondition when the files could not be deleted, and Unavailable when it takes longer than
    ``LONGEST_S``. A client that repeats the request waits for the same deletion.
    """
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    await wait_until_reconciled(bus, experiment_id)
    while True:
        async with db.read() as connection:
            now = await tensorboard_deletion(connection, experiment_id)
        waited_s = loop.time() - begun_s
        if waited_s >= UNHEARD_S and now.is_requested:
            return
        if not now.is_under_way:
            break
        if waited_s >= UNTAKEN_S and not now.is_taken_up:
            return
        if waited_s >= LONGEST_S:
            raise Unavailable(
                f"the TensorBoard files of experiment {experiment_id} are not deleted yet; ask again to wait for it "
                f"(task {now.task_id})"
            )
        with notifier.watch(*([allocation_topic(now.allocation_id)] if now.allocation_id else [])) as news:
            await wait_until_set(news, timeout_s=LOOK_S)
    is_of_request = earlier.is_under_way or now.task_id != earlier.task_id
    if is_of_request and now.failure is not None:
        raise FailedPrecondition(
            f"cannot delete the TensorBoard files of experiment {experiment_id}: {now.failure} "
            f"(its log: det task logs {now.task_id})"
        )
