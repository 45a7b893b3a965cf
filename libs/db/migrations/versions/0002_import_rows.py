"""What was imported, row by row, so that an import can be repeated."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "import_rows",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("source_hash", sa.Uuid(), nullable=True),
        sa.Column("target_hash", sa.Uuid(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "key", name=op.f("pk_import_rows")),
    )
