"""Makes the tables of Determined 0.38 from ``docs/reference/determined-0.38-schema.csv``."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from tests.harness.processes import REPOSITORY

SCHEMA: Final = REPOSITORY / "docs" / "reference" / "determined-0.38-schema.csv"

_STOPPING: Final = "STOPPING_CANCELED STOPPING_KILLED STOPPING_COMPLETED STOPPING_ERROR"
ENUMERATIONS: Final[Mapping[str, str]] = {
    "activity_type": "GET",
    "allocation_state": "PENDING ASSIGNED PULLING STARTING RUNNING WAITING TERMINATING TERMINATED",
    "checkpoint_state": "ACTIVE COMPLETED ERROR DELETED PARTIALLY_DELETED",
    "entity_type": "Project",
    "experiment_state": f"ACTIVE PAUSED {_STOPPING} DELETING CANCELED COMPLETED ERROR DELETE_FAILED RUNNING",
    "job_type": "EXPERIMENT NOTEBOOK SHELL COMMAND TENSORBOARD CHECKPOINT_GC GENERIC",
    "stats_type": "QUEUED IMAGEPULL",
    "task_state": f"ACTIVE CANCELED COMPLETED ERROR PAUSED {_STOPPING}",
    "task_type": "TRIAL NOTEBOOK SHELL COMMAND TENSORBOARD CHECKPOINT_GC GENERIC",
    "token_type": "USER_SESSION ACCESS_TOKEN",
    "trial_source_info_type": "INFERENCE FINE_TUNING",
    "trial_state": f"ACTIVE PAUSED {_STOPPING} CANCELED COMPLETED ERROR RUNNING",
    "trigger_type": "EXPERIMENT_STATE_CHANGE METRIC_THRESHOLD_EXCEEDED TASK_LOG CUSTOM",
    "webhook_mode": "WORKSPACE SPECIFIC",
    "webhook_type": "DEFAULT SLACK",
    "workload_type": "EXPERIMENT NTSC",
    "workspace_state": "UNSPECIFIED DELETED DELETING DELETE_FAILED",
}
"""As in docs/reference/import.md."""
PARTITIONS: Final = {
    "raw_steps": "TRAINING",
    "raw_validations": "VALIDATION",
    "generic_metrics": "GENERIC",
    "system_metrics": "PROFILING",
}
"""Parts of the table ``metrics``."""

Column = dict[str, str]


async def create_schema(connection: Any) -> None:
    """Make all types, sequences and tables in an empty database, through a connection of asyncpg."""
    for statement in statements():
        await connection.execute(statement)


def statements() -> Iterator[str]:
    yield "CREATE SCHEMA oauth"
    yield "CREATE SCHEMA scim"
    for name, values in ENUMERATIONS.items():
        quoted = ", ".join(f"'{value}'" for value in values.split())
        yield f"CREATE TYPE {name} AS ENUM ({quoted})"
    columns = tables()
    yield from (f"CREATE SEQUENCE {name}" for name in sorted(_sequences(columns)))
    for table, described in columns.items():
        ending = " PARTITION BY LIST (partition_type)" if table == "metrics" else ""
        yield f"CREATE TABLE {table} ({', '.join(_definitions(described))}){ending}"
    for table, value in PARTITIONS.items():
        yield f"ALTER TABLE metrics ATTACH PARTITION {table} FOR VALUES IN ('{value}')"
        yield f"CREATE INDEX ON {table} (trial_id, total_batches)"
    yield "CREATE INDEX ON task_logs (task_id)"


def tables() -> dict[str, list[Column]]:
    """Table, with its schema where that is not ``public`` -> its columns in their order."""
    with SCHEMA.open(newline="") as file:
        rows = list(csv.DictReader(file))
    named = groupby(
        rows, key=lambda row: row["table"] if row["schema"] == "public" else f"{row['schema']}.{row['table']}"
    )
    return {name: list(columns) for name, columns in named}


def _sequences(columns: Mapping[str, Sequence[Column]]) -> set[str]:
    defaults = (column["default"] for described in columns.values() for column in described)
    return {found[1] for default in defaults if (found := re.match(r"nextval\('([\w.]+)'", default))}


def _definitions(described: Sequence[Column]) -> Iterator[str]:
    for column in described:
        kind = re.sub(r"^_(.*)$", r"\1", column["type"])
        default = f" DEFAULT {column['default']}" if column["default"] else ""
        yield f"{column['column']} {kind}{'' if column['nullable'] == 't' else ' NOT NULL'}{default}"
    if keys := [column["column"] for column in described if "PRIMARY KEY" in column["key"]]:
        yield f"PRIMARY KEY ({', '.join(keys)})"
