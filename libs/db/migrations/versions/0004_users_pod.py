"""What users wrote of the pods of an experiment, so that it can be judged again where the pods run."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("experiments", sa.Column("users_pod", postgresql.JSONB(none_as_null=True), nullable=True))
