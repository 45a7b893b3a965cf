"""Counts the labels of experiments that were there before triggers counted them (migration 0017).

Nobody waits. What triggers have added since then is in what is counted now, and is taken off: whatever comes later adds
to that.
"""

from alembic import op

revision = "0019"
down_revision = "0017"

COLUMNS = "label, project_id, owner_id, state, archived"
# One statement, one snapshot.
COUNT = f"""
INSERT INTO label_counts ({COLUMNS}, number, is_sum)
SELECT {COLUMNS}, sum(number), true
  FROM (SELECT {COLUMNS}, 1 AS number FROM experiments, labels_in(config) AS label
        UNION ALL
        SELECT {COLUMNS}, -number FROM label_counts) AS counted
 GROUP BY {COLUMNS} HAVING sum(number) <> 0
"""  # noqa: S608  names of ours


def upgrade() -> None:
    op.execute(COUNT)
