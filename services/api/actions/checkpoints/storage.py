"""Storage configurations by number: checkpoints remember under which one they were stored.

Every rank of a trial registers the configuration it was given, all at once, and all get the same number. An experiment
has the storages that its trials have registered: checkpoint GC gets their keys, so no other can be named by its number.
Source: docs/reference/experiments.md 10.1, docs/reference/harness-protocol.md 13.1 and 13.3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config.parts.storage import COMMON_DEFAULTS, MEMBER_DEFAULTS, missing_parts, storage
from libs.db.tables.checkpoints import experiment_storages, storage_backends
from libs.errors import InvalidRequest

_PATH = "checkpointStorage"


def canonical_storage(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with its defaults, without how many checkpoints to keep, which is no part of where they are.

    Of azure only what is set is there: its client constructor tells absent from null. Raises InvalidRequest.
    """
    read = storage(dict(config), _PATH)
    problems = read.problems or missing_parts(read.value, _PATH)
    if problems:
        raise InvalidRequest("invalid checkpoint storage: " + "; ".join(str(problem) for problem in problems))
    kind = read.value["type"]
    own = {key: value for key, value in read.value.items() if key not in COMMON_DEFAULTS and value is not None}
    defaults = {} if kind == "azure" else MEMBER_DEFAULTS.get(kind, {})
    return {**defaults, **own}


async def register_storage(connection: AsyncConnection, experiment_id: int, config: Mapping[str, Any]) -> int:
    """Give a storage to an experiment, and return its number: the same for all that mean the same.

    Raises InvalidRequest.
    """
    ident = await _number_of(connection, config)
    tied = insert(experiment_storages).values(experiment_id=experiment_id, storage_id=ident)
    await connection.execute(tied.on_conflict_do_nothing())
    return ident


async def check_storage(connection: AsyncConnection, experiment_id: int, storage_id: int) -> None:
    """Raise InvalidRequest unless a trial of the experiment has registered the storage."""
    columns = experiment_storages.c
    tied = select(columns.storage_id).where(columns.experiment_id == experiment_id, columns.storage_id == storage_id)
    if await connection.scalar(tied) is None:
        raise InvalidRequest(f"no trial of experiment {experiment_id} has registered checkpoint storage {storage_id}")


async def _number_of(connection: AsyncConnection, config: Mapping[str, Any]) -> int:
    canonical = canonical_storage(config)
    digest = hashlib.sha256(msgspec.json.encode(canonical, order="sorted")).digest()
    backends = storage_backends.c
    known = select(backends.id).where(backends.config_hash == digest)
    ident: int | None = await connection.scalar(known)
    if ident is None:
        added = insert(storage_backends).values(config=canonical, config_hash=digest)
        ident = await connection.scalar(added.on_conflict_do_nothing().returning(backends.id))
    if ident is None:
        ident = await connection.scalar(known)  # somebody else was faster, and has committed
    assert ident is not None
    return ident
