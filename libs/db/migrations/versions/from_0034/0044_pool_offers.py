"""Pools in which tasks of jobs may start beside their own.

A new table that refers to no other: nothing is locked.
"""

from alembic import op

revision = "0044"
down_revision = "0043"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE pool_offers (
          job_id text NOT NULL,
          pool text NOT NULL,
          rank integer NOT NULL,
          after_s double precision NOT NULL,
          num_pods integer NOT NULL,
          time_limit_s integer,
          changes jsonb NOT NULL DEFAULT '{}',
          is_open boolean NOT NULL DEFAULT true,
          CONSTRAINT pk_pool_offers PRIMARY KEY (job_id, pool)
        )
    """)
    op.execute("CREATE INDEX ix_pool_offers_pool ON pool_offers (pool) WHERE is_open")
