"""Usage of an allocation is recorded by key, however many tasks have come since statistics were made."""

from alembic import op

revision = "0006"
down_revision = "0005"

# Not a join: as long as statistics take `tasks` for empty, reading the whole index of its other side costs as little as
# one row of its key, and each allocation of a large search would read every task.
RECORD_USAGE = """
CREATE OR REPLACE FUNCTION record_usage() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
  INSERT INTO allocation_usage (allocation_id, task_id, task_type, owner_id, workspace_name, experiment_id, labels,
                                pool, slots, requested_at, start_time, end_time)
  SELECT NEW.allocation_id, NEW.task_id, t.task_type, t.owner_id,
         coalesce((SELECT w.name FROM workspaces w WHERE w.id = t.workspace_id), ''), t.experiment_id,
         coalesce((SELECT e.config -> 'labels' FROM experiments e
                   WHERE e.id = t.experiment_id AND jsonb_typeof(e.config -> 'labels') = 'array'), '[]'),
         NEW.pool, NEW.slots, NEW.requested_at, NEW.start_time, NEW.end_time
  FROM tasks t
  WHERE t.task_id = NEW.task_id
  ON CONFLICT (allocation_id) DO UPDATE SET
    pool = excluded.pool, slots = excluded.slots, start_time = excluded.start_time, end_time = excluded.end_time;
  RETURN NULL;
END
$$
"""


def upgrade() -> None:
    op.execute(RECORD_USAGE)
