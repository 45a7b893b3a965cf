"""Totals of lists of runs, kept up to date instead of counted (libs/db/migrations/counting.py).

Triggers keep them, so services of the release before do too. Writing trials waits while the rows that are there are
counted; reading does not.
"""

from libs.db.migrations.counting import count_rows

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    count_rows("trials", counts="trial_counts", columns=("project_id", "state", "archived"))
