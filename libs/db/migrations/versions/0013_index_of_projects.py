"""The index of experiments by project goes: ``ix_experiments_of_project`` does what it did, and has ids in their order.

Nobody reads or writes experiments while it goes, for a moment.
"""

from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    lock_table("experiments", "ACCESS EXCLUSIVE")
    op.execute("DROP INDEX ix_experiments_project_id")
