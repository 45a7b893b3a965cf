"""For whom the cluster is asked for nodes of a pool, and for whom it was in vain.

A new table that refers to no other: nothing is locked.
"""

from alembic import op

revision = "0047"
down_revision = "0046"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE pool_growths (
          pool text NOT NULL,
          allocation_id text NOT NULL,
          pods integer NOT NULL,
          nodes integer NOT NULL,
          node_slots integer NOT NULL,
          gives_up_at timestamptz NOT NULL,
          known_nodes jsonb NOT NULL,
          places jsonb NOT NULL,
          placeholders jsonb NOT NULL,
          attempts integer NOT NULL,
          rests_until timestamptz,
          CONSTRAINT pk_pool_growths PRIMARY KEY (pool, allocation_id)
        )
    """)
    op.execute("CREATE UNIQUE INDEX uq_pool_growths_now ON pool_growths (pool) WHERE rests_until IS NULL")
