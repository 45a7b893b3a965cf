"""Looks at no more values of a run than decide that it has very many (migration 0027).

A trial of a hundred thousand metrics ended only when four hundred thousand values had been compared, of which none was
kept. Of at most 200 values of a kind the function returns what it did; of more it returned all, and returns 201.
"""

from alembic import op

revision = "0033"
down_revision = "0032"

VALUES = """
CREATE OR REPLACE FUNCTION values_of_run(hparams jsonb, summary jsonb, has_ended boolean)
RETURNS TABLE (kind text, column_key text, number numeric, text_key text, is_loose boolean)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$
  WITH known AS (
    (SELECT 'hyperparameter' AS kind, 'hp.' || name AS name, value FROM nodes_in(hparams)
      WHERE jsonb_typeof(value) <> 'object' OR value = '{}' LIMIT 201)
     UNION ALL
    (SELECT 'metric', 'validation.' || metric.key || '.' || aggregate, metric.value -> aggregate
       FROM jsonb_each(CASE WHEN has_ended AND jsonb_typeof(summary -> 'validation_metrics') = 'object'
                            THEN summary -> 'validation_metrics' ELSE '{}' END) AS metric,
            unnest(ARRAY['last', 'max', 'mean', 'min']) AS aggregate
      WHERE metric.value ? aggregate LIMIT 201)
  ), counted AS (
    SELECT known.*, count(*) OVER (PARTITION BY known.kind) > 200 AS is_loose FROM known
  )
  SELECT counted.kind, metric_name_key(counted.name), number_for_index(value),
         CASE WHEN counted.kind = 'hyperparameter' AND jsonb_typeof(value) NOT IN ('number', 'boolean')
              THEN metric_name_key(coalesce(value #>> '{}', 'null')) END,
         counted.is_loose
    FROM counted
$$
"""


def upgrade() -> None:
    op.execute(VALUES)
