"""Whether the summary of a trial is in rows of its own, which the next migration makes.

The column has a constant default, so nothing is rewritten. Nobody reads or writes trials while it is added, for a
moment; services of the release before read and write as they did.
"""

import sqlalchemy as sa
from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    lock_table("trials", "ACCESS EXCLUSIVE")
    op.add_column("trials", sa.Column("summary_in_rows", sa.Boolean(), server_default=sa.text("false"), nullable=False))
