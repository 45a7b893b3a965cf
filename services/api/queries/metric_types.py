"""Which metrics many trials have, and of which types, as of now: found by the database, wherever summaries are kept.

There may be a hundred trials of a hundred thousand names, nearly all with the same names: those come here once.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import driver_connection
from services.api.metrics.groups import AVG_METRICS, TRAINING, VALIDATION, VALIDATION_METRICS, group_of_summary
from services.api.queries.summaries import AVG, BEHIND

OF_PROJECT: Final = "t.project_id = $1 AND t.experiment_id >= $2 AND t.experiment_id < $3"
OF_BEST: Final = """t.id IN (
            SELECT e.best_trial_id FROM experiments e WHERE e.project_id = $1 AND e.id >= $2 AND e.id < $3)"""
# If the database knew the list, it would plan anew each time, which takes longer than running.
OF_EXPERIMENTS: Final = "t.experiment_id = ANY((SELECT $1::bigint[])::bigint[])"

_LARGE_BYTES: Final = 8 * 1024
"""Of a summary, as stored, which is compressed."""
_KEY: Final = f"""
       CASE g.metric_group WHEN '{TRAINING}' THEN '{AVG_METRICS}' WHEN '{VALIDATION}' THEN '{VALIDATION_METRICS}'
            ELSE g.metric_group END"""
# What services.api.metrics.summary.type_of says of a reported value.
_TYPE: Final = r"""
       CASE WHEN jsonb_typeof(each.value) <> 'string' THEN jsonb_typeof(each.value)
            WHEN each.value #>> '{}' IN ('NaN', 'Infinity', '-Infinity') THEN 'number'
            WHEN each.value #>> '{}' ~
                 '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?$'
            THEN 'date'
            ELSE 'string' END"""


def _members(value: str) -> str:
    return f"jsonb_each({_object(value)})"


def _object(value: str) -> str:
    return f"CASE jsonb_typeof({value}) WHEN 'object' THEN {value} ELSE '{{}}' END"


def _in_columns(which: str) -> str:
    return f"""
       FROM trials t
      CROSS JOIN {_members("t.summary_metrics")} AS of_group
      CROSS JOIN {_members("of_group.value")} AS metric
      WHERE {which} AND NOT (
            t.summary_in_rows AND EXISTS (SELECT FROM metric_marks mark WHERE mark.trial_id = t.id))"""


def _marked(which: str) -> str:
    return f"""
WITH marked AS MATERIALIZED (
       SELECT g.trial_id, g.metric_group, g.summary_id, g.folded_step, {_KEY} AS key
         FROM metric_marks mark
         JOIN trials t ON t.id = mark.trial_id AND t.summary_in_rows
         JOIN metric_groups g ON g.trial_id = t.id
        WHERE {which})"""  # noqa: S608  (of constants)


def names_of(which: str) -> str:
    """A query of the names that trials have, each once, and the keys of their groups.

    Of a large summary that is in rows too, these are read: names alone, where a document comes with all its values.
    """
    from_rows = f"""t.summary_in_rows AND (pg_column_size(t.summary_metrics) > {_LARGE_BYTES}
            OR EXISTS (SELECT FROM metric_marks mark WHERE mark.trial_id = t.id))"""
    return f"""
WITH in_rows AS MATERIALIZED (
       SELECT g.trial_id, g.metric_group, g.summary_id, g.folded_step, {_KEY} AS key
         FROM trials t
         JOIN metric_groups g ON g.trial_id = t.id
        WHERE {which} AND {from_rows})
SELECT DISTINCT key, name COLLATE "C" AS name
  FROM (SELECT of_group.key, metric.name
          FROM trials t
         CROSS JOIN {_members("t.summary_metrics")} AS of_group
         CROSS JOIN jsonb_object_keys({_object("of_group.value")}) AS metric (name)
         WHERE {which} AND NOT ({from_rows})
         UNION ALL
        SELECT g.key, s.name
          FROM in_rows g
         CROSS JOIN LATERAL (  -- by the index, whichever of all the names the planner expects a trial to have
               SELECT name FROM metric_summaries WHERE summary_id = g.summary_id OFFSET 0) AS s
         UNION ALL
        SELECT g.key, reported.name
          FROM in_rows g
         CROSS JOIN LATERAL (SELECT {AVG} AS document {BEHIND}) AS report
         CROSS JOIN jsonb_object_keys(report.document) AS reported (name)) AS known"""  # noqa: S608  (of constants)


def _types_of(which: str) -> str:
    """The same with their types. Values of several types in one trial are strings, in whichever order they came."""
    return f"""{_marked(which)}
SELECT DISTINCT key, name COLLATE "C" AS name, type
  FROM (SELECT of_group.key, metric.key AS name, metric.value ->> 'type' AS type {_in_columns(which)}
         UNION ALL
        SELECT key, name, CASE WHEN min(type) = max(type) THEN min(type) ELSE 'string' END
          FROM (SELECT g.trial_id, g.key, s.name COLLATE "C" AS name, s.summary ->> 'type' AS type
                  FROM marked g JOIN metric_summaries s ON s.summary_id = g.summary_id
                 UNION ALL
                SELECT g.trial_id, g.key, each.key COLLATE "C", {_TYPE}
                  FROM marked g
                 CROSS JOIN LATERAL (SELECT {AVG} AS document {BEHIND}) AS report
                 CROSS JOIN jsonb_each(report.document) AS each) AS of_trial
         GROUP BY trial_id, key, name) AS known"""  # noqa: S608  (of constants)


async def metric_types(connection: AsyncConnection, which: str, *wanted: Any) -> dict[tuple[str, str], set[str]]:
    """The types of each metric that the trials have, by group and name.

    which   one of the constants above, with what it is about: ``OF_PROJECT`` and ``OF_BEST`` a project, the first id of
            its experiments and the one behind the last
    """
    driver = await driver_connection(connection)
    types: dict[tuple[str, str], set[str]] = {}
    for key, name, kind in await driver.fetch(_types_of(which), *wanted):
        types.setdefault((group_of_summary(key), name), set()).add(kind)
    return types
