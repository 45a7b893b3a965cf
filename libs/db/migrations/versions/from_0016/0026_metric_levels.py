"""Numbers of long series, packed for charts: made when a series is asked for, forgotten with the reports they are of.

The new tables are empty. Services of the release before know nothing of them, and write the summary of a trial with
each report: one that may be before others, or take some back, forgets all that is packed of its trial.

Writing trials waits for a moment, while one of the tables refers to trials and these get a trigger; reading does not.
"""

import sqlalchemy as sa
from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0026"
down_revision = "0025"

# Whoever calls it has locked the trials, and taken back what it takes back. What is sealed stays before the newest
# report of its group, so that reports beyond all others, which are nearly all, have nothing to forget.
FORGET = """
CREATE FUNCTION forget_levels(trial_ids bigint[], metric_groups text[], steps integer[])
RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
  changed record;
BEGIN
  FOR changed IN
    SELECT c.trial_id, c.metric_group, min(c.step) AS step
      FROM unnest(trial_ids, metric_groups, steps) AS c (trial_id, metric_group, step)
     GROUP BY c.trial_id, c.metric_group
     ORDER BY c.trial_id, c.metric_group
  LOOP
    UPDATE metric_levels l
       SET generation = nextval('metric_generations'),
           sealed_step = coalesce(
             (SELECT max(m.total_batches)
                FROM metrics m
               WHERE m.trial_id = changed.trial_id AND m.metric_group = changed.metric_group
                 AND m.total_batches < changed.step AND NOT m.archived AND m.kind <> 'PROFILING'),
             '-2147483648'::integer)
     WHERE l.trial_id = changed.trial_id AND l.metric_group = changed.metric_group AND l.sealed_step >= changed.step;
    IF FOUND THEN
      DELETE FROM metric_chunks k
       WHERE k.trial_id = changed.trial_id AND k.metric_group = changed.metric_group AND k.last_step >= changed.step;
    END IF;
  END LOOP;
END
$$
"""
FORGET_ALL = """
CREATE FUNCTION forget_levels_of_trial() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
  UPDATE metric_levels
     SET generation = nextval('metric_generations'), sealed_step = '-2147483648'::integer
   WHERE trial_id = NEW.id;
  IF FOUND THEN
    DELETE FROM metric_chunks WHERE trial_id = NEW.id;
  END IF;
  RETURN NULL;
END
$$
"""
# By the name of its connections (libs/db/engine.py). A report beyond all that its trial has reported makes the total
# grow, and changes nothing before it.
FORGOTTEN = """
CREATE TRIGGER forget_levels AFTER UPDATE OF summary_metrics ON trials FOR EACH ROW
WHEN (NEW.total_batches <= OLD.total_batches AND current_setting('application_name') = 'resolute')
EXECUTE FUNCTION forget_levels_of_trial()
"""


def upgrade() -> None:
    lock_table("trials", "SHARE ROW EXCLUSIVE")
    op.execute("CREATE SEQUENCE metric_generations")
    op.create_table(
        "metric_levels",
        sa.Column("trial_id", sa.BigInteger(), nullable=False),
        sa.Column("metric_group", sa.Text(), nullable=False),
        sa.Column(
            "generation", sa.BigInteger(), server_default=sa.text("nextval('metric_generations')"), nullable=False
        ),
        sa.Column("sealed_step", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trial_id"], ["trials.id"], name=op.f("fk_metric_levels_trial_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trial_id", "metric_group", name=op.f("pk_metric_levels")),
    )
    op.create_table(
        "metric_chunks",
        sa.Column("trial_id", sa.BigInteger(), nullable=False),
        sa.Column("metric_group", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(collation="C"), nullable=False),
        sa.Column("chunk_no", sa.Integer(), nullable=False),
        sa.Column("first_step", sa.Integer(), nullable=False),
        sa.Column("last_step", sa.Integer(), nullable=False),
        sa.Column("extremes", sa.LargeBinary(), nullable=False),
        sa.Column("points", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trial_id", "metric_group"],
            ["metric_levels.trial_id", "metric_levels.metric_group"],
            name=op.f("fk_metric_chunks_trial_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("trial_id", "metric_group", "name_key", "chunk_no", name=op.f("pk_metric_chunks")),
    )
    # Not compressed, so that a part of the points is read without the rest.
    op.execute("ALTER TABLE metric_chunks ALTER COLUMN points SET STORAGE EXTERNAL")
    op.execute("ALTER TABLE metric_chunks ALTER COLUMN extremes SET STORAGE EXTERNAL")
    for statement in (FORGET, FORGET_ALL, FORGOTTEN):
        op.execute(statement)
