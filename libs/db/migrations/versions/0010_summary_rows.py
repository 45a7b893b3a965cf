"""Summaries of metrics as rows: one for each trial, group and name, so that a report does not write them all anew.

A trial stays as it is, its summary in its own row, until ``summary_in_rows`` says otherwise. From then on its reports
are appended, a mark says that some may not be in the summary yet, and ``trials.summary_metrics`` with ``total_batches``
is true again whenever there is no mark. The column serves the release before, whose services write it: that takes a
trial back to it, and has to wait while there is a mark (libs/db/tables/metrics.py).

The new tables are empty. Writing trials waits for a moment, while one of them refers to trials and these get a trigger;
reading does not.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from libs.db.migrations.table_locks import lock_table

revision = "0010"
down_revision = "0009"

NOTHING = "'-2147483648'::integer"
# A long name is told by its SHA-256, behind its beginning, so that every name fits into an entry of the index. Such a
# key has 513 bytes, one more than the longest name that is its own key.
NAME_KEY = r"""
CREATE FUNCTION metric_name_key(name text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
$$
  SELECT CASE WHEN octet_length(name) <= 512 THEN name
              ELSE left(name, 112) || repeat(E'\x01', 449 - octet_length(left(name, 112)))
                   || encode(sha256(convert_to(name, 'UTF8')), 'hex') END
$$
"""

# Whoever appends reports shares the lock of their trial; whoever needs to know that nobody does takes it alone.
# Each statement of the function sees what was committed before it began, and so, after the locks, whatever somebody who
# held them alone has left behind. The subqueries with an OFFSET stay what they are: a probe of an index per report.
APPEND = """
CREATE FUNCTION append_reports(trial_ids bigint[], reports json, subjects text[], headers text[], payloads bytea[])
RETURNS TABLE (trial_id bigint, metric_group text, step integer) LANGUAGE plpgsql AS
$$
#variable_conflict use_column
DECLARE
  free bigint[];
BEGIN
  free := ARRAY(SELECT id FROM unnest(trial_ids) AS id
               WHERE pg_try_advisory_xact_lock_shared(1582305400, (id % 2147483647)::integer));
  RETURN QUERY
  WITH added AS (
       INSERT INTO metrics AS m (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
       SELECT r.trial_id, r.run, r.metric_group, r.kind, r.step, r.end_time, r.document
         FROM json_to_recordset(reports) AS r (
              trial_id bigint, run integer, state text, restarts integer, metric_group text, kind text, step integer,
              end_time timestamptz, document jsonb)
        WHERE r.trial_id = ANY(free)
          AND EXISTS (
              SELECT FROM trials t
               WHERE t.id = r.trial_id AND t.summary_in_rows AND t.run_id = r.run AND t.state = r.state
                 AND t.restarts = r.restarts
              OFFSET 0)
          AND EXISTS (
              SELECT FROM metric_groups g
               WHERE g.trial_id = r.trial_id AND g.metric_group = r.metric_group AND g.run_id = r.run
              OFFSET 0)
          AND NOT EXISTS (
              SELECT FROM metrics later
               WHERE later.trial_id = r.trial_id AND later.metric_group = r.metric_group
                 AND later.total_batches >= r.step AND NOT later.archived AND later.kind <> 'PROFILING'
              OFFSET 0)
        ORDER BY r.trial_id, r.metric_group, r.step
       ON CONFLICT DO NOTHING
       RETURNING m.trial_id, m.metric_group, m.total_batches
     ), marked AS (
       INSERT INTO metric_marks (trial_id)
       SELECT DISTINCT a.trial_id
         FROM added a
        WHERE NOT EXISTS (SELECT FROM metric_marks mark WHERE mark.trial_id = a.trial_id OFFSET 0)
        ORDER BY a.trial_id
       ON CONFLICT DO NOTHING
     )
  SELECT * FROM added;
  -- Inserting nothing would wake the relay all the same.
  IF cardinality(subjects) > 0 THEN
    INSERT INTO outbox (subject, headers, payload)
    SELECT message.subject, message.headers::jsonb, message.payload
      FROM unnest(subjects, headers, payloads) WITH ORDINALITY AS message (subject, headers, payload, position)
     ORDER BY position;
  END IF;
END
$$
"""

# Services of the release before try again after a serialization failure, five times at most; meanwhile the owner of the
# summaries brings the column up to date. It needs the row of the trial, which it gets before they do: it waits for it.
GUARD = """
CREATE FUNCTION guard_summary() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
  IF current_setting('resolute.summary_writer', true) = 'rows' THEN
    RETURN NEW;
  END IF;
  PERFORM pg_advisory_xact_lock(1582305400, (NEW.id % 2147483647)::integer);
  IF EXISTS (SELECT FROM metric_marks WHERE trial_id = NEW.id) THEN
    PERFORM pg_sleep(0.5);
    RAISE EXCEPTION 'the summary of trial % is not up to date yet', NEW.id USING ERRCODE = 'serialization_failure';
  END IF;
  NEW.summary_in_rows := false;
  RETURN NEW;
END
$$
"""
GUARDED = """
CREATE TRIGGER guard_summary BEFORE UPDATE OF summary_metrics ON trials FOR EACH ROW
WHEN (OLD.summary_in_rows AND NEW.summary_in_rows) EXECUTE FUNCTION guard_summary()
"""

# There may be a hundred thousand rows of one summary, so whoever replaces or deletes a group leaves them to the owner.
LEAVE_GARBAGE = """
CREATE FUNCTION leave_summary() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
  INSERT INTO metric_garbage (summary_id) VALUES (OLD.summary_id) ON CONFLICT DO NOTHING;
  RETURN NULL;
END
$$
"""
LEFT_WHEN_DELETED = """
CREATE TRIGGER leave_summary_deleted AFTER DELETE ON metric_groups FOR EACH ROW EXECUTE FUNCTION leave_summary()
"""
LEFT_WHEN_REPLACED = """
CREATE TRIGGER leave_summary_replaced AFTER UPDATE OF summary_id ON metric_groups FOR EACH ROW
WHEN (OLD.summary_id <> NEW.summary_id) EXECUTE FUNCTION leave_summary()
"""


def upgrade() -> None:
    lock_table("trials", "SHARE ROW EXCLUSIVE")
    op.execute("CREATE SEQUENCE metric_summary_ids")
    op.create_table(
        "metric_groups",
        sa.Column("trial_id", sa.BigInteger(), nullable=False),
        sa.Column("metric_group", sa.Text(), nullable=False),
        sa.Column(
            "summary_id", sa.BigInteger(), server_default=sa.text("nextval('metric_summary_ids')"), nullable=False
        ),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("folded_step", sa.Integer(), server_default=sa.text(NOTHING), nullable=False),
        sa.Column("change_no", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["trial_id"], ["trials.id"], name=op.f("fk_metric_groups_trial_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trial_id", "metric_group", name=op.f("pk_metric_groups")),
        postgresql_with={"fillfactor": 50},
    )
    op.create_table(
        "metric_summaries",
        sa.Column("summary_id", sa.BigInteger(), nullable=False),
        sa.Column("name_key", sa.Text(collation="C"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("summary", postgresql.JSONB(none_as_null=True), nullable=False),
        sa.Column("last", postgresql.JSONB(none_as_null=True), nullable=True),
        sa.Column("last_step", sa.Integer(), server_default=sa.text(NOTHING), nullable=False),
        sa.PrimaryKeyConstraint("summary_id", "name_key", name=op.f("pk_metric_summaries")),
        postgresql_with={"fillfactor": 45},
    )
    op.create_table(
        "metric_marks",
        sa.Column("trial_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("marked_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("trial_id", name=op.f("pk_metric_marks")),
    )
    op.create_table(
        "metric_garbage",
        sa.Column("summary_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("summary_id", name=op.f("pk_metric_garbage")),
    )
    for statements in (NAME_KEY, APPEND, GUARD, GUARDED, LEAVE_GARBAGE, LEFT_WHEN_DELETED, LEFT_WHEN_REPLACED):
        op.execute(statements)
