"""Adds the values of runs and experiments that were there before triggers kept them (migrations 0027 and 0028).

Some at a time, each time in a transaction of its own: nobody changes these rows meanwhile, which takes milliseconds. It
waits for nobody who has locked a row, and takes it later, so that it is no part of a deadlock. What it has added stays
when it ends in the middle, and is not added twice.
"""

from typing import Any

from alembic import op
from sqlalchemy import TextClause, text

revision = "0029"
down_revision = "0028"

AT_ONCE = 500
PAUSE_S = 0.2
ADD_RUNS = text("""
    WITH free AS (
      SELECT id, project_id, experiment_id, archived, hparams, summary_metrics, end_time
        FROM trials WHERE id = ANY(:ids) FOR SHARE SKIP LOCKED
    ), added AS MATERIALIZED (
      SELECT free.id, project_id, experiment_id, archived, v.*
        FROM free, values_of_run(hparams, summary_metrics, end_time IS NOT NULL) AS v
    ), numbers AS (
      INSERT INTO run_numbers (project_id, column_key, number, trial_id, experiment_id, archived)
      SELECT project_id, column_key, number, id, experiment_id, archived FROM added
       WHERE number IS NOT NULL AND NOT is_loose ON CONFLICT DO NOTHING
    ), texts AS (
      INSERT INTO run_texts (project_id, column_key, text_key, trial_id, experiment_id, archived)
      SELECT project_id, column_key, text_key, id, experiment_id, archived FROM added
       WHERE text_key IS NOT NULL AND NOT is_loose ON CONFLICT DO NOTHING
    ), loose AS (
      INSERT INTO loose_runs (trial_id, kind) SELECT DISTINCT id, kind FROM added WHERE is_loose ON CONFLICT DO NOTHING
    )
    SELECT id FROM free
""")
ADD_EXPERIMENTS = text("""
    WITH free AS (
      SELECT id, project_id, config, best_trial_id FROM experiments WHERE id = ANY(:ids) FOR SHARE SKIP LOCKED
    ), added AS (
      INSERT INTO experiment_numbers (project_id, column_key, lowest, highest, experiment_id)
      SELECT project_id, v.*, id FROM free, numbers_of_experiment(config) AS v ON CONFLICT DO NOTHING
    ), best AS (
      INSERT INTO best_runs (trial_id, experiment_id)
      SELECT best_trial_id, id FROM free WHERE best_trial_id IS NOT NULL ON CONFLICT DO NOTHING
    )
    SELECT id FROM free
""")
PAUSE = text("SELECT pg_sleep(:pause)")


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for table, add in (("experiments", ADD_EXPERIMENTS), ("trials", ADD_RUNS)):
            _add_all(op.get_bind(), table, add)


def _add_all(connection: Any, table: str, add: TextClause) -> None:
    following = text(f"SELECT id FROM {table} WHERE id > :after ORDER BY id LIMIT {AT_ONCE}")  # noqa: S608  of ours
    still_there = text(f"SELECT id FROM {table} WHERE id = ANY(:ids)")  # noqa: S608  a name of ours
    after = 0
    while ids := list(connection.scalars(following, {"after": after})):
        after = ids[-1]
        while left := set(ids) - set(connection.scalars(add, {"ids": ids})):
            connection.execute(PAUSE, {"pause": PAUSE_S})
            ids = list(connection.scalars(still_there, {"ids": list(left)}))
