"""Counts rows by group, once and then by triggers, instead of whenever somebody asks for a total.

A transaction that changes how many rows a group has adds by how many, so the numbers of a group add up to its rows in
every snapshot, whoever else is writing and whatever is rolled back. The scheduler puts those of a group together.

Migrations that have landed use this: what it does to the database stays as it is.
"""

from alembic import op

from libs.db.migrations.table_locks import lock_table

TYPES = {"project_id": "bigint", "owner_id": "bigint", "state": "text", "archived": "boolean"}


def count_rows(table: str, *, counts: str, columns: tuple[str, ...]) -> None:
    """Make the table ``counts``, with the numbers of rows of ``table`` by ``columns``, and triggers that keep it so."""
    lock_table(table, "SHARE ROW EXCLUSIVE")
    for statement in _statements(table, counts, columns):
        op.execute(statement)


def _statements(table: str, counts: str, columns: tuple[str, ...]) -> list[str]:
    group = ", ".join(columns)
    changed = " OR ".join(f"OLD.{each} IS DISTINCT FROM NEW.{each}" for each in columns)
    fields = ", ".join(f"{each} {TYPES[each]} NOT NULL" for each in columns)
    old, new = (", ".join(f"{row}.{each}" for each in columns) for row in ("OLD", "NEW"))
    to_counts = f"INSERT INTO {counts} ({group}, number)"

    def of_many(number: str, rows: str) -> str:
        return f"{to_counts} SELECT {group}, {number} FROM {rows} GROUP BY {group};"  # noqa: S608  names of ours

    empty = f"DELETE FROM {counts}"  # noqa: S608  a name of ours

    def function(name: str, body: str) -> str:
        return f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NULL; END $$"

    return [
        f"CREATE TABLE {counts} ({fields}, number bigint NOT NULL)",
        function(f"{counts}_after_insert", of_many("count(*)", "changed")),
        function(f"{counts}_after_delete", of_many("-count(*)", "changed")),
        function(f"{counts}_after_update", f"{to_counts} VALUES ({old}, -1), ({new}, 1);"),
        # Whoever puts numbers together has to be done: what they replace is not seen any more, and theirs is not yet.
        function(f"{counts}_after_truncate", f"LOCK TABLE {counts} IN SHARE ROW EXCLUSIVE MODE; {empty};"),
        f"CREATE TRIGGER {counts}_after_insert AFTER INSERT ON {table} REFERENCING NEW TABLE AS changed"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {counts}_after_insert()",
        f"CREATE TRIGGER {counts}_after_delete AFTER DELETE ON {table} REFERENCING OLD TABLE AS changed"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {counts}_after_delete()",
        # Nearly all updates are of other columns: they call nothing.
        f"CREATE TRIGGER {counts}_after_update AFTER UPDATE ON {table}"
        f" FOR EACH ROW WHEN ({changed}) EXECUTE FUNCTION {counts}_after_update()",
        f"CREATE TRIGGER {counts}_after_truncate AFTER TRUNCATE ON {table}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {counts}_after_truncate()",
        # Nobody writes until this is committed, and those who were writing have been waited for.
        of_many("count(*)", table),
    ]
