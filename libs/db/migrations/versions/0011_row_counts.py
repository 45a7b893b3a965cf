"""Totals of lists of experiments and runs, kept up to date instead of counted.

A transaction that changes how many rows a group has adds by how many, so the numbers of a group add up to its rows in
every snapshot, whoever else is writing and whatever is rolled back. The scheduler puts those of a group together.

Triggers keep them, so services of the release before do too. Writing experiments and trials waits while the rows that
are there are counted; reading does not.
"""

from alembic import op

revision = "0011"
down_revision = "0010"

GROUPED_BY = {
    "experiments": ("experiment_counts", ("project_id", "owner_id", "state", "archived")),
    "trials": ("trial_counts", ("project_id", "state", "archived")),
}
TYPES = {"project_id": "bigint", "owner_id": "bigint", "state": "text", "archived": "boolean"}


def statements(table: str, counts: str, columns: tuple[str, ...]) -> list[str]:
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
        f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE",
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


def upgrade() -> None:
    for table, (counts, columns) in GROUPED_BY.items():
        for statement in statements(table, counts, columns):
            op.execute(statement)
    # Runs of these are counted, and taken off the totals.
    op.execute("CREATE INDEX ix_experiments_hidden ON experiments (id) WHERE archived OR state = 'DELETING'")
