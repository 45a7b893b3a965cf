"""Which experiments of a project have changed, so that what all of them have in common is not read anew each time.

Triggers note it, in parts of 512 experiments by their ids, so services of the release before do too. Writing
experiments waits while their parts are found; reading does not.
"""

import sqlalchemy as sa
from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0024"
down_revision = "0023"

NOTED = "INSERT INTO project_changes (project_id, part, number)"
INSERTED_OR_DELETED = f"""
CREATE FUNCTION note_experiments() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN {NOTED} SELECT DISTINCT project_id, id >> 9, 1 FROM changed; RETURN NULL; END $$
"""  # noqa: S608  (of constants)
UPDATED = f"""
CREATE FUNCTION note_experiment() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
  {NOTED} VALUES (NEW.project_id, NEW.id >> 9, 1);
  IF OLD.project_id <> NEW.project_id THEN
    {NOTED} VALUES (OLD.project_id, OLD.id >> 9, 1);
  END IF;
  RETURN NULL;
END
$$
"""
# Nobody can tell any more which experiments there were: all parts have changed.
TRUNCATED = f"""
CREATE FUNCTION note_all_experiments() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN {NOTED} SELECT project_id, part, 1 FROM project_changes GROUP BY project_id, part; RETURN NULL; END $$
"""  # noqa: S608  (of constants)
TRIGGERS = (
    "project_changes_after_insert AFTER INSERT ON experiments REFERENCING NEW TABLE AS changed"
    " FOR EACH STATEMENT EXECUTE FUNCTION note_experiments()",
    "project_changes_after_delete AFTER DELETE ON experiments REFERENCING OLD TABLE AS changed"
    " FOR EACH STATEMENT EXECUTE FUNCTION note_experiments()",
    "project_changes_after_update AFTER UPDATE OF config, project_id, best_trial_id ON experiments"
    " FOR EACH ROW EXECUTE FUNCTION note_experiment()",
    "project_changes_after_truncate AFTER TRUNCATE ON experiments"
    " FOR EACH STATEMENT EXECUTE FUNCTION note_all_experiments()",
)


def upgrade() -> None:
    lock_table("experiments", "SHARE ROW EXCLUSIVE")
    op.create_table(
        "project_changes",
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("part", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
    )
    op.create_index(op.f("ix_project_changes_project_id"), "project_changes", ["project_id"])
    for function in (INSERTED_OR_DELETED, UPDATED, TRUNCATED):
        op.execute(function)
    for trigger in TRIGGERS:
        op.execute(f"CREATE TRIGGER {trigger}")
    op.execute(f"{NOTED} SELECT DISTINCT project_id, id >> 9, 1 FROM experiments")  # noqa: S608  (of constants)
