"""How long the attempts of a trial that have ended have run, where that is limited."""

import sqlalchemy as sa
from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    lock_table("trials", "ACCESS EXCLUSIVE")
    op.add_column("trials", sa.Column("ran_s", sa.Float(), server_default="0", nullable=False))
