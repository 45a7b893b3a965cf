"""What charts of long series are chosen by before any block is looked at, for one metric and for several.

New columns that may be NULL: nothing is rewritten. Services of the release before leave them NULL in the chunks that
they make; whoever asks for such a series has them filled.
"""

from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0043"
down_revision = "0042"


def upgrade() -> None:
    lock_table("metric_chunks", "ACCESS EXCLUSIVE")
    op.execute(
        "ALTER TABLE metric_chunks ADD COLUMN outline bytea, ADD COLUMN positions bytea, ADD COLUMN steps_hash bytea"
    )
