"""Indexes for the orders and filters of lists of experiments and runs, so that a page costs what it shows.

Among experiments that were started at one moment, a list has ids in the direction of its order and a search has them
ascending: there is an index for either, so that a page sorts none of them.

Services of the release before read and write as they did. Writing experiments and trials waits while the indexes are
made; reading does not.
"""

from alembic import op

revision = "0010"
down_revision = "0009"

INDEXES = {
    # Of lists and searches by start.
    "ix_experiments_started": "experiments (start_time, id)",
    "ix_experiments_started_last": "experiments (start_time DESC, id)",
    # Of one user, project, state or label, in the order of ids.
    "ix_experiments_of_owner": "experiments (owner_id, id)",
    "ix_experiments_of_project": "experiments (project_id, id)",
    "ix_experiments_in_state": "experiments (state, id)",
    "ix_experiments_labels": "experiments USING gin ((config -> 'labels') jsonb_path_ops)",
    "ix_trials_of_project_by_id": "trials (project_id, id)",
    "ix_trials_started": "trials (project_id, start_time, id)",
}


def upgrade() -> None:
    for name, rows in INDEXES.items():
        op.execute(f"CREATE INDEX {name} ON {rows}")
    op.execute("DROP INDEX ix_experiments_project_id")
