"""Indexes for the orders and filters of lists of experiments, so that a page costs what it shows.

Among experiments that were started at one moment, a list has ids in the direction of its order and a search has them
ascending: there is an index for either, so that a page sorts none of them.

Services of the release before read and write as they did. Writing experiments waits while the indexes are made; reading
does not.
"""

from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0011"
down_revision = "0010"

INDEXES = {
    # Of lists and searches by start.
    "ix_experiments_started": "experiments (start_time, id)",
    "ix_experiments_started_last": "experiments (start_time DESC, id)",
    # Of one user, project, state or label, in the order of ids.
    "ix_experiments_of_owner": "experiments (owner_id, id)",
    "ix_experiments_of_project": "experiments (project_id, id)",
    "ix_experiments_in_state": "experiments (state, id)",
    "ix_experiments_labels": "experiments USING gin ((config -> 'labels') jsonb_path_ops)",
    # When the last one of a project was started, which lists of projects say.
    "ix_experiments_last_of_project": "experiments (project_id, start_time)",
    # Runs of these are counted, and taken off the totals.
    "ix_experiments_hidden": "experiments (id) WHERE archived OR state = 'DELETING'",
}


def upgrade() -> None:
    lock_table("experiments", "SHARE")
    for name, rows in INDEXES.items():
        op.execute(f"CREATE INDEX {name} ON {rows}")
