"""Statements that compare a table of this system with what comes in again, row by row. Pure.

For each row that was imported, ``import_rows`` has two hashes over the imported columns: as the row came from the old
installation, and as the import left it here. So it can be told which side has changed a row since.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlalchemy import LargeBinary

from deploy.determined_import.kinds.copied import CopiedTable

REFERENCES: Final[Mapping[str, str]] = {
    "experiment_id": "experiments",
    "trial_id": "trials",
    "task_id": "tasks",
    "allocation_id": "allocations",
    "job_id": "jobs",
    "owner_id": "users",
    "user_id": "users",
    "workspace_id": "workspaces",
    "project_id": "projects",
    "group_id": "groups",
    "model_id": "models",
    "storage_id": "storage_backends",
    "webhook_id": "webhooks",
}
"""Columns that name a row of another table; what hangs on a row that was skipped is skipped with it."""

SAME: Final = "same"
ADD: Final = "add"
UPDATE: Final = "update"
RECORD: Final = "record"
DELETED: Final = "it was deleted here"
DELETED_AND_CHANGED: Final = "it was deleted here, and has changed there"
BOTH: Final = "it has changed here and there"
TAKEN: Final = "its id or name belongs to something else here"
UNCLEAR: Final = "it differs, and an earlier release has not recorded which side has changed it"
HANGING: Final = "it hangs on what was skipped"
WENT_ON: Final = "its experiment was changed here"

LEFT_ALONE: Final = (DELETED, WENT_ON)
"""Reasons to skip a row that nobody has to look at: the old installation has not changed it."""


def identity(table: CopiedTable) -> tuple[str, ...]:
    """Columns that tell the rows of a kind apart, here as there."""
    return table.identity or tuple(column.name for column in table.target.primary_key.columns)


def key(table: CopiedTable, alias: str) -> str:
    return f"ROW({', '.join(f'{alias}.{name}' for name in identity(table))})::text"


def row_hash(table: CopiedTable, alias: str) -> str:
    """Over all imported columns but counters; independent of the order in which JSON was written."""
    values = (
        f"md5({alias}.{name})" if isinstance(table.target.c[name].type, LargeBinary) else f"{alias}.{name}"
        for name in table.columns
        if name not in table.counters
    )
    return f"md5(ROW({', '.join(values)})::text)::uuid"


def same_row(table: CopiedTable, left: str, right: str) -> str:
    return " AND ".join(
        f"{left}.{name} {'IS NOT DISTINCT FROM' if table.target.c[name].nullable else '='} {right}.{name}"
        for name in identity(table)
    )


def hangs_on_skipped(table: CopiedTable, alias: str) -> str:
    """Whether a row, or one that it refers to, is in ``held_back``."""
    references = {name: REFERENCES[name] for name in table.columns if name in REFERENCES}
    if len(identity(table)) == 1:
        references[identity(table)[0]] = table.target.name
    conditions = [
        f"EXISTS (SELECT FROM held_back h WHERE h.what = '{what}' AND h.id = {alias}.{name}::text)"
        for name, what in references.items()
    ]
    return f"({' OR '.join(conditions)})" if conditions else "false"


def record_all(table: CopiedTable) -> str:
    """Records all rows of a kind that was just imported for the first time."""
    return (
        "INSERT INTO import_rows (kind, key, source_hash, target_hash)"  # noqa: S608
        f" SELECT '{table.kind}', {key(table, 't')}, {row_hash(table, 't')}, {row_hash(table, 't')}"
        f" FROM {table.target.name} t WHERE {table.counted} ON CONFLICT DO NOTHING"
    )


def judge(table: CopiedTable, *, recorded: bool) -> str:
    """Makes ``judged`` of ``incoming``: for each row its key, its hash, and what is to be done with it.

    recorded  whether rows of this kind were recorded at all; earlier releases have not done so
    """
    return f"""CREATE TEMP TABLE judged ON COMMIT DROP AS SELECT key, hash, CASE
            WHEN known AND source_hash IS NULL THEN '{TAKEN}'
            WHEN known AND NOT here AND hash = source_hash THEN '{DELETED}'
            WHEN known AND hash = source_hash THEN '{SAME}'
            WHEN NOT known AND here AND hash = here_hash THEN '{RECORD}'
            WHEN held THEN '{HANGING}'
            WHEN NOT known AND NOT here THEN '{ADD}'
            WHEN NOT known THEN '{TAKEN if recorded else UNCLEAR}'
            WHEN NOT here THEN '{DELETED_AND_CHANGED}'
            WHEN hash = here_hash THEN '{RECORD}'
            WHEN here_hash = target_hash THEN '{UPDATE}'
            ELSE '{BOTH}' END AS verdict
        FROM (
            SELECT {key(table, "i")} AS key, {row_hash(table, "i")} AS hash, r.key IS NOT NULL AS known, r.source_hash,
                r.target_hash, t.{_never_null(table)} IS NOT NULL AS here,
                {row_hash(table, "t")} AS here_hash, {hangs_on_skipped(table, "i")} AS held
            FROM incoming i LEFT JOIN import_rows r ON r.kind = '{table.kind}' AND r.key = {key(table, "i")}
            LEFT JOIN {table.target.name} t ON {same_row(table, "t", "i")}
        ) AS compared"""  # noqa: S608


def add(table: CopiedTable) -> str:
    """Inserts the new rows; one whose id or name is taken stays out, and its verdict says so."""
    columns = ", ".join(table.columns)
    return (
        f"INSERT INTO {table.target.name} ({columns}) SELECT {', '.join(f'i.{name}' for name in table.columns)}"  # noqa: S608
        f" FROM incoming i JOIN judged j ON j.key = {key(table, 'i')} WHERE j.verdict = '{ADD}' ON CONFLICT DO NOTHING"
    )


def find_taken(table: CopiedTable) -> str:
    return (
        f"UPDATE judged SET verdict = '{TAKEN}' WHERE verdict = '{ADD}' AND NOT EXISTS (SELECT FROM incoming i"  # noqa: S608
        f" JOIN {table.target.name} t ON {same_row(table, 't', 'i')} WHERE {key(table, 'i')} = judged.key)"
    )


def change(table: CopiedTable, alone: str | None = None) -> str:
    """Brings rows that only the old installation has changed up to date; ``alone`` is the key of one of them."""
    values = [
        f"{name} = greatest(t.{name}, i.{name})" if name in table.counters else f"{name} = i.{name}"
        for name in table.columns
        if name not in identity(table)
    ] + [f"{name} = {value}" for name, value in table.reset.items()]
    only = "" if alone is None else " AND j.key = $1"
    return (
        f"UPDATE {table.target.name} t SET {', '.join(values)}"  # noqa: S608
        f" FROM incoming i JOIN judged j ON j.key = {key(table, 'i')}"
        f" WHERE {same_row(table, 't', 'i')} AND j.verdict = '{UPDATE}'{only}"
    )


def follow(table: CopiedTable) -> str:
    """Writes rows over those that are here, for kinds whose rows only follow their trial or task."""
    columns = ", ".join(table.columns)
    own = identity(table)
    others = [name for name in table.columns if name not in own]
    here, there = (", ".join(f"{alias}.{name}" for name in others) for alias in ("t", "excluded"))
    return (
        f"INSERT INTO {table.target.name} AS t ({columns}) SELECT {columns} FROM incoming"  # noqa: S608
        f" ON CONFLICT ({', '.join(own)}) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in others)}"
        f" WHERE ({here}) IS DISTINCT FROM ({there})"
    )


def _never_null(table: CopiedTable) -> str:
    return next(column.name for column in table.target.primary_key.columns)
