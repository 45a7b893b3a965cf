"""Triggers of trials, which tell that the numbers of an archived experiment have changed (migration 0020).

Those of all experiments that are archived by now are told as changed too: the scheduler counts them.

Writing trials waits while the triggers are made, for a moment; reading does not.
"""

from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0021"
down_revision = "0020"

# A statement of the function sees what was committed before it began, so that an experiment is in sight only for those
# who write before it is archived; for others who see more of the past, it is told at any rate.
TOLD = "(e.archived OR current_setting('transaction_isolation') <> 'read committed')"
OF_ROW = "OLD.{0} IS DISTINCT FROM NEW.{0}"
STATEMENTS = (
    f"""
    CREATE FUNCTION trials_of_archived_after_many() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN
      INSERT INTO archived_trial_changes (experiment_id)
      SELECT e.id FROM experiments e WHERE e.id IN (SELECT experiment_id FROM changed) AND {TOLD};
      RETURN NULL;
    END $$
    """,  # noqa: S608  of constants
    f"""
    CREATE FUNCTION trials_of_archived_after_update() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN
      INSERT INTO archived_trial_changes (experiment_id)
      SELECT e.id FROM experiments e WHERE e.id IN (OLD.experiment_id, NEW.experiment_id) AND {TOLD};
      RETURN NULL;
    END $$
    """,  # noqa: S608  of constants
    # Whoever counts has to be done: what it replaces is not seen any more, and what it has written is not yet.
    """
    CREATE FUNCTION trials_of_archived_after_truncate() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN
      LOCK TABLE archived_trial_changes IN SHARE ROW EXCLUSIVE MODE;
      DELETE FROM archived_trial_changes;
      DELETE FROM archived_trial_numbers;
      DELETE FROM archived_trial_counts;
      RETURN NULL;
    END $$
    """,
    "CREATE TRIGGER trials_of_archived_after_insert AFTER INSERT ON trials REFERENCING NEW TABLE AS changed"
    " FOR EACH STATEMENT EXECUTE FUNCTION trials_of_archived_after_many()",
    "CREATE TRIGGER trials_of_archived_after_delete AFTER DELETE ON trials REFERENCING OLD TABLE AS changed"
    " FOR EACH STATEMENT EXECUTE FUNCTION trials_of_archived_after_many()",
    "CREATE TRIGGER trials_of_archived_after_update AFTER UPDATE ON trials FOR EACH ROW"
    f" WHEN ({' OR '.join(OF_ROW.format(each) for each in ('experiment_id', 'project_id', 'state', 'archived'))})"
    " EXECUTE FUNCTION trials_of_archived_after_update()",
    "CREATE TRIGGER trials_of_archived_after_truncate AFTER TRUNCATE ON trials"
    " FOR EACH STATEMENT EXECUTE FUNCTION trials_of_archived_after_truncate()",
    "INSERT INTO archived_trial_changes (experiment_id) SELECT id FROM experiments WHERE archived",
)


def upgrade() -> None:
    lock_table("trials", "SHARE ROW EXCLUSIVE")
    for statement in STATEMENTS:
        op.execute(statement)
