"""How long tasks may run, and how long they have run before the present attempt.

Columns with constant defaults: nothing is rewritten. A scheduler of the release before requests allocations without a
limit.
"""

import sqlalchemy as sa
from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    lock_table("allocations", "ACCESS EXCLUSIVE")
    op.add_column("allocations", sa.Column("time_limit_s", sa.Integer(), nullable=True))
    op.add_column("allocations", sa.Column("ran_before_s", sa.Float(), server_default="0", nullable=False))
