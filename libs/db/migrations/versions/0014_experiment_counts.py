"""Totals of lists of experiments, kept up to date instead of counted (libs/db/migrations/counting.py).

Triggers keep them, so services of the release before do too. Writing experiments waits while the rows that are there
are counted; reading does not.
"""

from libs.db.migrations.counting import count_rows

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    count_rows("experiments", counts="experiment_counts", columns=("project_id", "owner_id", "state", "archived"))
