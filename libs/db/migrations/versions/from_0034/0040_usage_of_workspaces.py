"""Usage of an allocation is that of a workspace, whatever its name is later on. NULL of those that came before."""

import sqlalchemy as sa
from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0040"
down_revision = "0039"

# As in 0006, with the id of the workspace.
RECORD_USAGE = """
CREATE OR REPLACE FUNCTION record_usage() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
  INSERT INTO allocation_usage (allocation_id, task_id, task_type, owner_id, workspace_name, workspace_id,
                                experiment_id, labels, pool, slots, requested_at, start_time, end_time)
  SELECT NEW.allocation_id, NEW.task_id, t.task_type, t.owner_id,
         coalesce((SELECT w.name FROM workspaces w WHERE w.id = t.workspace_id), ''), t.workspace_id, t.experiment_id,
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
    lock_table("allocation_usage", "ACCESS EXCLUSIVE")
    op.add_column("allocation_usage", sa.Column("workspace_id", sa.BigInteger(), nullable=True))
    op.execute(RECORD_USAGE)
