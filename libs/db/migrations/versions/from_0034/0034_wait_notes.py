"""Why allocations wait: the code of the reason, since when, and what their owners were told.

A new table that refers to no other: nothing is locked.
"""

from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE wait_notes (
          task_id text NOT NULL,
          allocation_id text NOT NULL,
          code text NOT NULL,
          reason text NOT NULL,
          since timestamptz NOT NULL,
          told text NOT NULL DEFAULT '',
          told_at timestamptz,
          CONSTRAINT pk_wait_notes PRIMARY KEY (task_id, allocation_id)
        )
    """)
