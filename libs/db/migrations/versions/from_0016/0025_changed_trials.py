"""Which trials of a project have changed (migration 0024), by the parts that their experiments are in.

Writing trials waits while triggers are made; reading does not.
"""

from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0025"
down_revision = "0024"

NOTED = "INSERT INTO project_changes (project_id, part, number)"
INSERTED_OR_DELETED = f"""
CREATE FUNCTION note_trials() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN {NOTED} SELECT DISTINCT project_id, experiment_id >> 9, 1 FROM changed; RETURN NULL; END $$
"""  # noqa: S608  (of constants)
UPDATED = f"""
CREATE FUNCTION note_trial() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
  {NOTED} VALUES (NEW.project_id, NEW.experiment_id >> 9, 1);
  IF OLD.project_id <> NEW.project_id THEN
    {NOTED} VALUES (OLD.project_id, OLD.experiment_id >> 9, 1);
  END IF;
  RETURN NULL;
END
$$
"""
TRIGGERS = (
    "project_changes_after_insert AFTER INSERT ON trials REFERENCING NEW TABLE AS changed"
    " FOR EACH STATEMENT EXECUTE FUNCTION note_trials()",
    "project_changes_after_delete AFTER DELETE ON trials REFERENCING OLD TABLE AS changed"
    " FOR EACH STATEMENT EXECUTE FUNCTION note_trials()",
    "project_changes_after_update"
    " AFTER UPDATE OF summary_metrics, summary_in_rows, searcher_metric_value, hparams, metadata, project_id ON trials"
    " FOR EACH ROW EXECUTE FUNCTION note_trial()",
    "project_changes_after_truncate AFTER TRUNCATE ON trials"
    " FOR EACH STATEMENT EXECUTE FUNCTION note_all_experiments()",
)


def upgrade() -> None:
    lock_table("trials", "SHARE ROW EXCLUSIVE")
    op.execute(INSERTED_OR_DELETED)
    op.execute(UPDATED)
    for trigger in TRIGGERS:
        op.execute(f"CREATE TRIGGER {trigger}")
