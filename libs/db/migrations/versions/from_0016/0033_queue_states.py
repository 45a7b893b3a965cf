"""What plans of a queue remember: who is blocked since when, and for whom others were asked to leave.

A new table that refers to no other: nothing is locked.
"""

from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE queue_states (
          pool text NOT NULL,
          allocation_id text NOT NULL,
          blocked_at timestamptz,
          overtaken integer NOT NULL DEFAULT 0,
          nominated jsonb NOT NULL DEFAULT '[]',
          CONSTRAINT pk_queue_states PRIMARY KEY (pool, allocation_id)
        )
    """)
