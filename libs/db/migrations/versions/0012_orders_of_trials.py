"""Indexes for the orders of lists of runs, so that a page costs what it shows.

Services of the release before read and write as they did. Writing trials waits while the indexes are made; reading does
not.
"""

from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0012"
down_revision = "0011"

INDEXES = {
    "ix_trials_of_project_by_id": "trials (project_id, id)",
    "ix_trials_started": "trials (project_id, start_time, id)",
}


def upgrade() -> None:
    lock_table("trials", "SHARE")
    for name, rows in INDEXES.items():
        op.execute(f"CREATE INDEX {name} ON {rows}")
