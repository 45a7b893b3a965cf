"""When tasks asked last whether to leave, so that one whose questions stop is told about."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "preemption_polls",
        sa.Column("allocation_id", sa.Text(), nullable=False),
        sa.Column("polled_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("absence_noted_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["allocation_id"],
            ["allocations.allocation_id"],
            name=op.f("fk_preemption_polls_allocation_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("allocation_id", name=op.f("pk_preemption_polls")),
    )
