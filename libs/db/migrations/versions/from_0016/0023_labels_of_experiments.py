"""Adds the experiments that had labels before triggers kept them (migration 0022).

Some at a time, each time in a transaction of its own: nobody changes their labels meanwhile, which takes milliseconds.
It waits for nobody who has locked a row, and takes it later, so that it is no part of a deadlock. What it has added
stays when it ends in the middle, and is not added twice.
"""

from typing import Any

from alembic import op
from sqlalchemy import text

revision = "0023"
down_revision = "0022"

AT_ONCE = 1000
PAUSE_S = 0.2
NEXT = text("SELECT id FROM experiments WHERE id > :after ORDER BY id LIMIT :most")
STILL_THERE = text("SELECT id FROM experiments WHERE id = ANY(:ids)")
ADD = text("""
    WITH free AS (
      SELECT id, config FROM experiments WHERE id = ANY(:ids) FOR SHARE SKIP LOCKED
    ), added AS (
      INSERT INTO labelled_experiments (label_key, experiment_id)
      SELECT metric_name_key(label), id FROM free, labels_in(config) AS label ON CONFLICT DO NOTHING
    )
    SELECT id FROM free
""")
PAUSE = text("SELECT pg_sleep(:pause)")


def upgrade() -> None:
    with op.get_context().autocommit_block():
        connection = op.get_bind()
        after = 0
        while ids := list(connection.scalars(NEXT, {"after": after, "most": AT_ONCE})):
            after = ids[-1]
            _add(connection, ids)


def _add(connection: Any, ids: list[int]) -> None:
    while left := set(ids) - set(connection.scalars(ADD, {"ids": ids})):
        connection.execute(PAUSE, {"pause": PAUSE_S})
        ids = list(connection.scalars(STILL_THERE, {"ids": list(left)}))
