"""Requests to delete files of checkpoints: a task of the scheduler carries them out, with the rights of the owner.

Source: docs/reference/experiments.md 10.4 and 10.5.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.checkpoints.checkpoint_retention import checkpoints_to_delete, policy_of
from libs.db.any_of import any_of
from libs.db.checkpoints.gc_candidates import gc_candidates
from libs.db.checkpoints.registered_checkpoints import check_not_registered
from libs.db.tables.checkpoints import checkpoint_gc_requests, checkpoints
from libs.errors import FailedPrecondition, InvalidRequest, NotFound
from libs.tasks.checkpoint_gc import EVERYTHING
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.actions.experiment_lock import change, lock_experiment, require_right
from services.api.waits.tensorboard_deletion import tensorboard_deletion


class StoredCheckpoint(Struct, frozen=True):
    uuid: str
    experiment_id: int | None
    storage_id: int | None


async def remove_files(connection: AsyncConnection, uuids: Sequence[str], globs: Sequence[str]) -> None:
    """Ask for the files that match any of ``globs`` to be deleted from each checkpoint; returns before it is done.

    No globs delete nothing and refresh the lists of files. Raises InvalidRequest, NotFound, and FailedPrecondition for
    those that are registered as versions of models.
    """
    _check_globs(globs)
    grouped: dict[tuple[int, int | None], list[str]] = defaultdict(list)
    for found in await _find(connection, uuids):
        if found.experiment_id is None:
            raise FailedPrecondition(f"checkpoint '{found.uuid}' belongs to no experiment")
        grouped[found.experiment_id, found.storage_id].append(found.uuid)
    experiment_ids = sorted({experiment_id for experiment_id, _ in grouped})
    locked = [await lock_experiment(connection, experiment_id) for experiment_id in experiment_ids]
    await check_not_registered(connection, uuids, "deleted")
    for (experiment_id, storage_id), group in grouped.items():
        await _request(connection, experiment_id, storage_id, group, globs)
    for row in locked:
        await change(connection, row, "edited")  # so that the scheduler looks


async def apply_retention_policy(connection: AsyncConnection, experiment_id: int, config: Mapping[str, Any]) -> None:
    """Ask for everything to be deleted that the policy in ``config`` does not keep. The experiment is locked."""
    candidates = await gc_candidates(connection, experiment_id, config)
    grouped: dict[int | None, list[str]] = defaultdict(list)
    for unwanted in checkpoints_to_delete(candidates, policy_of(config)):
        grouped[unwanted.storage_id].append(unwanted.uuid)
    for storage_id, uuids in grouped.items():
        await _request(connection, experiment_id, storage_id, uuids, EVERYTHING)


async def delete_tensorboard_files(connection: AsyncConnection, experiment_id: int, rights: UserRights) -> None:
    """Ask for the TensorBoard files of an experiment to be deleted. Raises NotFound, PermissionDenied.

    A deletion that is asked for or under way already is joined: clients repeat a request whose answer was lost.
    """
    locked = await lock_experiment(connection, experiment_id)
    await require_right(connection, rights, Action.DELETE_TENSORBOARD_FILES, locked)
    if (await tensorboard_deletion(connection, experiment_id)).is_under_way:
        return
    await connection.execute(
        insert(checkpoint_gc_requests).values(experiment_id=experiment_id, delete_tensorboards=True)
    )
    await change(connection, locked, "edited")


def _check_globs(globs: Iterable[str]) -> None:
    for glob in globs:
        if not glob:
            raise InvalidRequest("cannot have empty string glob")
        if ".." in glob:
            raise InvalidRequest(f"glob '{glob}' cannot contain '..'")


async def _find(connection: AsyncConnection, uuids: Sequence[str]) -> list[StoredCheckpoint]:
    wanted = list(dict.fromkeys(uuids))
    rows = await connection.execute(
        select(checkpoints.c.uuid, checkpoints.c.experiment_id, checkpoints.c.storage_id).where(
            any_of(checkpoints.c.uuid, wanted)
        )
    )
    by_uuid = {row.uuid: StoredCheckpoint(row.uuid, row.experiment_id, row.storage_id) for row in rows}
    unknown = [uuid for uuid in wanted if uuid not in by_uuid]
    if unknown:
        raise NotFound("checkpoints", ", ".join(unknown))
    return [by_uuid[uuid] for uuid in wanted]


async def _request(
    connection: AsyncConnection, experiment_id: int, storage_id: int | None, uuids: Sequence[str], globs: Sequence[str]
) -> None:
    await connection.execute(
        insert(checkpoint_gc_requests).values(
            experiment_id=experiment_id, storage_id=storage_id, uuids=list(uuids), globs=list(globs)
        )
    )
