"""An index for when the last experiment of a project was started, which lists of projects say.

Services of the release before read and write as they did. Writing experiments waits while it is made; reading does not.
"""

from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.execute("CREATE INDEX ix_experiments_last_of_project ON experiments (project_id, start_time)")
