"""Experiments that come into sight or leave it count as a change of their part of the project (migration 0024), so that
totals of searches are known while there is none.

Writing experiments waits while the trigger is made, for a moment; reading does not.
"""

from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0045"
down_revision = "0044"


def upgrade() -> None:
    lock_table("experiments", "SHARE ROW EXCLUSIVE")
    op.execute(
        "CREATE TRIGGER project_changes_after_hiding AFTER UPDATE OF archived, state ON experiments FOR EACH ROW"
        " WHEN (OLD.archived <> NEW.archived OR (OLD.state = 'DELETING') <> (NEW.state = 'DELETING'))"
        " EXECUTE FUNCTION note_experiment()"
    )
