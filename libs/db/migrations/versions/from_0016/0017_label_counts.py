"""Totals of lists of one label, kept up to date instead of counted: what there was before, the next migration counts.

Triggers keep them, so services of the release before do too. Writing experiments waits while the triggers are made, for
a moment; reading does not.
"""

from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0017"
down_revision = "0015"

GROUP = ("project_id", "owner_id", "state", "archived")
COLUMNS = ", ".join(("label", *GROUP))
TABLE = """
CREATE TABLE label_counts (
  label text NOT NULL, project_id bigint NOT NULL, owner_id bigint NOT NULL, state text NOT NULL,
  archived boolean NOT NULL, number bigint NOT NULL, is_sum boolean NOT NULL DEFAULT false)
"""
# By a hash, because nothing bounds a label but the size of a configuration.
OF_LABEL = "CREATE INDEX ix_label_counts_label ON label_counts USING hash (label)"
OF_CHANGES = "CREATE INDEX ix_label_counts_changes ON label_counts (project_id) WHERE NOT is_sum"
# As lists find them: texts in an array, each once.
LABELS = """
CREATE FUNCTION labels_in(config jsonb) RETURNS SETOF text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$
  SELECT DISTINCT label #>> '{}'
    FROM jsonb_array_elements(
         CASE jsonb_typeof(config -> 'labels') WHEN 'array' THEN config -> 'labels' ELSE '[]' END) AS label
   WHERE jsonb_typeof(label) = 'string'
$$
"""
CHANGED = f"""({" OR ".join(f"OLD.{each} IS DISTINCT FROM NEW.{each}" for each in GROUP)}
  OR OLD.config -> 'labels' IS DISTINCT FROM NEW.config -> 'labels')"""


def _function(name: str, body: str) -> str:
    return f"""
    CREATE FUNCTION label_counts_after_{name}() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN {body}; RETURN NULL; END $$
    """


def _of(number: str, rows: str) -> str:
    return f"SELECT {COLUMNS}, {number} FROM {rows}"  # noqa: S608  names of ours


def _of_row(number: str, row: str) -> str:
    columns = ", ".join(f"{row}.{each}" for each in GROUP)
    return f"SELECT label, {columns}, {number} FROM labels_in({row}.config) AS label"  # noqa: S608  names of ours


def upgrade() -> None:
    lock_table("experiments", "SHARE ROW EXCLUSIVE")
    to_counts = f"INSERT INTO label_counts ({COLUMNS}, number)"
    changed_rows = f"changed, labels_in(config) AS label GROUP BY {COLUMNS}"
    for statement in (
        TABLE,
        OF_LABEL,
        OF_CHANGES,
        LABELS,
        _function("insert", f"{to_counts} {_of('count(*)', changed_rows)}"),
        _function("delete", f"{to_counts} {_of('-count(*)', changed_rows)}"),
        _function("update", f"{to_counts} {_of_row('-1', 'OLD')} UNION ALL {_of_row('1', 'NEW')}"),
        _function("truncate", "LOCK TABLE label_counts IN SHARE ROW EXCLUSIVE MODE; DELETE FROM label_counts"),
        "CREATE TRIGGER label_counts_after_insert AFTER INSERT ON experiments REFERENCING NEW TABLE AS changed"
        " FOR EACH STATEMENT EXECUTE FUNCTION label_counts_after_insert()",
        "CREATE TRIGGER label_counts_after_delete AFTER DELETE ON experiments REFERENCING OLD TABLE AS changed"
        " FOR EACH STATEMENT EXECUTE FUNCTION label_counts_after_delete()",
        # Whoever writes anything else, as progress, looks at no configuration.
        f"CREATE TRIGGER label_counts_after_update AFTER UPDATE OF {', '.join(('config', *GROUP))} ON experiments"
        f" FOR EACH ROW WHEN {CHANGED} EXECUTE FUNCTION label_counts_after_update()",
        "CREATE TRIGGER label_counts_after_truncate AFTER TRUNCATE ON experiments"
        " FOR EACH STATEMENT EXECUTE FUNCTION label_counts_after_truncate()",
    ):
        op.execute(statement)
