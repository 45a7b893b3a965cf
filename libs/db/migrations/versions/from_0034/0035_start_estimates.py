"""When allocations are expected to start, and how far off the first estimates were.

New tables that refer to no other: nothing is locked.
"""

from alembic import op

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE start_estimates (
          allocation_id text CONSTRAINT pk_start_estimates PRIMARY KEY,
          pool text NOT NULL,
          estimated_at timestamptz,
          basis text NOT NULL,
          jobs_ahead integer NOT NULL,
          slots_ahead integer NOT NULL,
          made_at timestamptz NOT NULL,
          first_estimate timestamptz,
          first_made_at timestamptz
        )
    """)
    op.execute("""
        CREATE TABLE estimate_errors (
          allocation_id text CONSTRAINT pk_estimate_errors PRIMARY KEY,
          pool text NOT NULL,
          made_at timestamptz NOT NULL,
          estimated_at timestamptz NOT NULL,
          started_at timestamptz NOT NULL
        )
    """)
    op.execute("CREATE INDEX ix_estimate_errors_started_at ON estimate_errors (started_at)")
