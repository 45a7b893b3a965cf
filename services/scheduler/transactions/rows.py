"""Rows in memory: loaded under lock, changed, and written back as far as they changed.

Field names are column names. In between, what happens to a row is plain functions on these structs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, Select, Table, select
from sqlalchemy.engine import RowMapping

from libs.db.engine import Connection
from libs.db.prepared.many_rows import KEY, as_columns, insert_of, update_of
from libs.db.prepared.statements import PreparedStatement
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import allocations, generic_tasks, tasks
from libs.db.tables.trials import trials
from libs.events.observations import ObservedPod
from libs.tracing import current_traceparent


class ExperimentRow(Struct, kw_only=True):
    id: int
    state: str
    config: dict[str, Any]
    users_pod: dict[str, Any] | None
    owner_id: int
    project_id: int
    job_id: str
    progress: float | None
    unmanaged: bool
    best_trial_id: int | None
    end_time: datetime | None
    error: str | None
    deletion_tasks: list[str] | None
    ssh_private_key: str
    ssh_public_key: str


class TrialRow(Struct, kw_only=True):
    id: int
    experiment_id: int
    request_id: str | None
    seed: int
    hparams: dict[str, Any]
    state: str
    restarts: int
    run_id: int
    end_time: datetime | None
    warm_start_checkpoint_uuid: str | None
    stopped_by_searcher: bool
    early_exit_reason: str | None
    early_exit_deadline: datetime | None
    blocked_nodes: list[str]
    transient_ends: int
    not_before: datetime | None
    error: str | None
    ran_s: float


class TaskRow(Struct, kw_only=True):
    task_id: str
    task_type: str
    job_id: str | None
    experiment_id: int | None
    owner_id: int
    workspace_id: int
    end_time: datetime | None
    spec: dict[str, Any] | None
    cancel_retries: list[dict[str, Any]]


class GenericTaskRow(Struct, kw_only=True):
    """What a task of type GENERIC has beyond its ``TaskRow``."""

    task_id: str
    state: str


class AllocationRow(Struct, kw_only=True):
    allocation_id: str
    task_id: str
    job_id: str
    name: str
    pool: str
    slots: int
    num_pods: int
    preemptible: bool
    preemption_timeout_s: int
    state: str
    requested_at: datetime
    assigned_at: datetime | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    released_at: datetime | None = None
    is_ready: bool = False
    revision: int = 0
    pods: list[dict[str, Any]] = []
    places: list[dict[str, Any]] = []
    wait_reason: str = ""
    ports: dict[str, int] = {}
    blocked_nodes: list[str] = []
    time_limit_s: int | None = None
    ran_before_s: float = 0.0
    namespace: str = ""
    priority: int | None = None
    preempted_at: datetime | None = None
    preempt_deadline: datetime | None = None
    preempt_reason: str | None = None
    preempt_acked: bool = False
    killed_at: datetime | None = None
    kill_reason: str | None = None
    killed_while_running: bool = False
    exit_reason: str | None = None
    exit_error: str | None = None
    exit_kind: str = ""
    stopped_early: bool = False
    status_code: int | None = None
    explained_at: datetime | None = None
    retries_canceled: bool = False
    exit_processed: bool = False
    traceparent: str | None = msgspec.field(default_factory=current_traceparent)

    @property
    def pods_seen(self) -> tuple[ObservedPod, ...]:
        return msgspec.convert(self.pods, tuple[ObservedPod, ...])


RowT = TypeVar("RowT", ExperimentRow, TrialRow, TaskRow, GenericTaskRow, AllocationRow)

_TABLES: Mapping[type[Struct], tuple[Table, str]] = {
    ExperimentRow: (experiments, "id"),
    TrialRow: (trials, "id"),
    TaskRow: (tasks, "task_id"),
    GenericTaskRow: (generic_tasks, "task_id"),
    AllocationRow: (allocations, "allocation_id"),
}


def columns_of(kind: type[Struct]) -> Select[Any]:
    """``SELECT`` of the columns that ``kind`` has, without conditions."""
    table, _ = _TABLES[kind]
    return select(*(table.c[name] for name in kind.__struct_fields__))


def row_of(kind: type[RowT], mapping: RowMapping | Mapping[str, Any]) -> RowT:
    return kind(**{name: mapping[name] for name in kind.__struct_fields__})


class Locked(Generic[RowT]):
    """Rows under lock, each with the values it had, so that writing back is one update per row that changed."""

    def __init__(self, rows: Iterable[RowT] = ()) -> None:
        self.rows: list[RowT] = []
        self._before: list[dict[str, Any]] = []
        for row in rows:
            self.add(row)

    def add(self, row: RowT) -> RowT:
        """From here on ``row`` is written back; it is as the database has it."""
        self.rows.append(row)
        self._before.append(_values(row))
        return row

    async def write(self, connection: Connection) -> None:
        """Write what changed, with one statement for all rows in which the same has. Called once, at the end."""
        alike: dict[tuple[type[Struct], tuple[str, ...]], list[dict[str, Any]]] = {}
        for row, before in zip(self.rows, self._before, strict=True):
            now = msgspec.structs.asdict(row)
            changed = tuple(name for name, value in now.items() if value != before[name])
            if changed:
                _, key = _TABLES[type(row)]
                values = {KEY: before[key], **{name: now[name] for name in changed}}
                alike.setdefault((type(row), changed), []).append(values)
        for (kind, changed), rows in alike.items():
            table, key = _TABLES[kind]
            await update_of(table, key, changed).rows(connection, **as_columns(table, changed, rows))


def _values(row: Struct) -> dict[str, Any]:
    """Present values; containers are copied one level deep, as they are replaced or added to, never changed deeper."""
    return {
        name: value.copy() if isinstance(value, list | dict) else value
        for name, value in msgspec.structs.asdict(row).items()
    }


# The locks are FOR NO KEY UPDATE: they let others insert rows that refer to the locked one, as the api does when it
# has a trial locked and adds to the searcher events of its experiment.


async def lock_one(connection: Connection, kind: type[RowT], key: Any, locked: Locked[RowT]) -> RowT | None:
    """The row with primary key ``key``, locked until the transaction ends and written back with ``locked``."""
    _, name = _TABLES[kind]
    found = await lock_where(connection, kind, f"{name} = :key", locked, key=key)
    return found[0] if found else None


async def lock_where(
    connection: Connection, kind: type[RowT], condition: str, locked: Locked[RowT], **parameters: Any
) -> list[RowT]:
    """The rows that satisfy ``condition``, in SQL, locked in the order of their keys, as everybody locks several."""
    found = await _locking(kind, condition).rows(connection, **parameters)
    return [locked.add(row_of(kind, row)) for row in found]


@cache
def _locking(kind: type[Struct], condition: str) -> PreparedStatement:
    table, key = _TABLES[kind]
    columns = ", ".join(kind.__struct_fields__)
    return PreparedStatement(
        f"SELECT {columns} FROM {table.name} WHERE {condition} ORDER BY {key} FOR NO KEY UPDATE"  # noqa: S608
    )


async def lock_many(
    connection: Connection, kind: type[RowT], condition: ColumnElement[bool], locked: Locked[RowT]
) -> list[RowT]:
    """As ``lock_where``, with a condition of SQLAlchemy."""
    table, name = _TABLES[kind]
    query = columns_of(kind).where(condition).order_by(table.c[name]).with_for_update(key_share=True)
    return [locked.add(row_of(kind, found)) for found in (await connection.execute(query)).mappings()]


async def insert_rows(connection: Connection, rows: Sequence[AllocationRow]) -> None:
    """Insert rows that this transaction adds."""
    if rows:
        table, _ = _TABLES[AllocationRow]
        names = AllocationRow.__struct_fields__
        columns = as_columns(table, names, [msgspec.structs.asdict(row) for row in rows])
        await insert_of(table, names).rows(connection, **columns)
