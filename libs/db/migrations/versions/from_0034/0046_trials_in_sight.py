"""The same of trials, which are archived by themselves.

Writing trials waits while the trigger is made, for a moment; reading does not.
"""

from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0046"
down_revision = "0045"


def upgrade() -> None:
    lock_table("trials", "SHARE ROW EXCLUSIVE")
    op.execute(
        "CREATE TRIGGER project_changes_after_hiding AFTER UPDATE OF archived ON trials FOR EACH ROW"
        " WHEN (OLD.archived <> NEW.archived) EXECUTE FUNCTION note_trial()"
    )
