"""Jobs that were moved ahead of or behind others keep where they stand.

The column has no default, so adding it rewrites no row. NULL is the place by the time of the submission, which is all
that the release before knows.
"""

import sqlalchemy as sa
from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    lock_table("jobs", "ACCESS EXCLUSIVE")
    op.add_column("jobs", sa.Column("queue_position", sa.Numeric(), nullable=True))
