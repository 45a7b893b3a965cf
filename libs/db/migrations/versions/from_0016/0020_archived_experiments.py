"""Numbers of the trials of archived experiments, which lists of runs take off their totals instead of counting them.

The tables, and the triggers of experiments; those of trials follow in the next migration. Triggers tell whose numbers
have changed, so services of the release before do too, and the scheduler counts those
(services/scheduler/archived_trials.py).

Writing experiments waits while the triggers are made, for a moment; reading does not.
"""

from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0020"
down_revision = "0019"

NUMBERS = "project_id bigint NOT NULL, state text NOT NULL, archived boolean NOT NULL, number bigint NOT NULL"
STATEMENTS = (
    f"CREATE TABLE archived_trial_counts ({NUMBERS})",
    f"CREATE TABLE archived_trial_numbers (experiment_id bigint NOT NULL, {NUMBERS})",
    "CREATE INDEX ix_archived_trial_numbers_experiment_id ON archived_trial_numbers (experiment_id)",
    "CREATE TABLE archived_trial_changes (experiment_id bigint NOT NULL, seen_by bigint)",
    """
    CREATE FUNCTION archived_trials_after_update() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO archived_trial_changes (experiment_id) VALUES (NEW.id); RETURN NULL; END $$
    """,
    """
    CREATE FUNCTION archived_trials_after_delete() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN
      INSERT INTO archived_trial_changes (experiment_id) SELECT id FROM changed WHERE archived;
      RETURN NULL;
    END $$
    """,
    "CREATE TRIGGER archived_trials_after_update AFTER UPDATE OF archived ON experiments"
    " FOR EACH ROW WHEN (OLD.archived IS DISTINCT FROM NEW.archived) EXECUTE FUNCTION archived_trials_after_update()",
    "CREATE TRIGGER archived_trials_after_delete AFTER DELETE ON experiments REFERENCING OLD TABLE AS changed"
    " FOR EACH STATEMENT EXECUTE FUNCTION archived_trials_after_delete()",
)


def upgrade() -> None:
    lock_table("experiments", "SHARE ROW EXCLUSIVE")
    for statement in STATEMENTS:
        op.execute(statement)
