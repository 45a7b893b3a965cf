"""An attempt at a trial is explained in its log before the trial shows what becomes of it."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("allocations", sa.Column("explained_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column(
        "allocations", sa.Column("retries_canceled", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
