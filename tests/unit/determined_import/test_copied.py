"""The statements that follow from where the rows of a table come from."""

from __future__ import annotations

from deploy.determined_import.kinds.copied import CopiedTable, batch, counts, next_key, overwrite
from libs.db.tables.workspaces import pool_bindings

TABLE = CopiedTable(
    kind="pools",
    target=pool_bindings,
    rows="rp b",
    key="b.name",
    key_type="text",
    columns={"workspace_id": "b.w", "pool": "b.name"},
    skipped={"it's gone": "NOT b.valid"},
    batch_rows=10,
    replaces="pool",
)


def test_a_batch_is_read_in_the_types_of_its_target() -> None:
    query = batch(TABLE, None, "z")
    assert query.startswith(
        "SELECT workspace_id, pool FROM (SELECT (b.w)::BIGINT AS workspace_id, (b.name)::TEXT AS pool FROM rp b"
    )


def test_a_batch_begins_behind_the_last_one_and_leaves_out_what_is_skipped_or_unknown() -> None:
    assert batch(TABLE, "a'b", "z").endswith(
        " WHERE b.name <= 'z'::text AND b.name > 'a''b'::text AND (NOT b.valid) IS NOT TRUE) AS found"
    )


def test_the_first_batch_begins_at_the_first_row() -> None:
    assert " WHERE " not in next_key(TABLE, None)
    assert " WHERE b.name > 'a'::text ORDER BY 1 LIMIT 10" in next_key(TABLE, "a")


def test_rows_are_counted_by_the_first_reason_to_skip_them() -> None:
    assert counts(TABLE).startswith("SELECT CASE WHEN NOT b.valid THEN 'it''s gone' END AS reason, count(*) AS rows")


def test_built_in_rows_are_overwritten_by_those_that_come_in() -> None:
    assert overwrite(TABLE, "incoming").endswith(
        "ON CONFLICT (pool) DO UPDATE SET workspace_id = excluded.workspace_id, pool = excluded.pool"
    )
