"""Bounded summaries of trials whose columns lack reports, made of summary rows and the reports behind them.

Neither a summary nor a report leaves the database whole: of each group come the shortest names, with their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import DriverConnection, driver_connection
from services.api.metrics.groups import summary_key
from services.api.metrics.summary import GroupSummary, fold
from services.api.queries.search.summaries.bounded_summaries import MOST_NAMES, BoundedSummary, bound
from services.api.queries.summaries import AVG, BEHIND, SHOWN, TAIL

_group_decoder: Final = msgspec.json.Decoder(GroupSummary)

# The shortest names of a group are among the shortest of its summary rows and the shortest that only its tail has. The
# order is that of the keys of a jsonb. Each report of the tail is unpacked once, not for each name.
_SHORTEST: Final = f"""
SELECT t.id, g.metric_group, known.number + coming.number AS names, known.folded::text AS folded,
       ARRAY(SELECT coalesce((SELECT jsonb_object_agg(name, report.document -> name)
                                FROM unnest(known.names || coming.names) AS name WHERE report.document ? name),
                             '{{}}')::text
               FROM (SELECT {AVG} AS document {TAIL}) AS report) AS tail
  FROM metric_marks mark
  JOIN trials t ON t.id = mark.trial_id AND t.summary_in_rows
  LEFT JOIN metric_groups g ON g.trial_id = t.id
 CROSS JOIN LATERAL (
       SELECT (SELECT count(*) FROM metric_summaries s WHERE s.summary_id = g.summary_id) AS number,
              coalesce(array_agg(shortest.name), '{{}}') AS names,
              coalesce(jsonb_object_agg(shortest.name, shortest.summary), '{{}}') AS folded
         FROM (SELECT s.name, {SHOWN} AS summary FROM metric_summaries s WHERE s.summary_id = g.summary_id
                ORDER BY octet_length(s.name), s.name COLLATE "C" LIMIT {MOST_NAMES}) AS shortest) AS known
 CROSS JOIN LATERAL (
       SELECT count(*) AS number,
              coalesce((array_agg(name ORDER BY octet_length(name), name COLLATE "C"))[:{MOST_NAMES}], '{{}}') AS names
         FROM (SELECT key.name
                 FROM (SELECT {AVG} AS document {BEHIND}) AS report, jsonb_object_keys(report.document) AS key (name)
               EXCEPT
               SELECT s.name FROM metric_summaries s WHERE s.summary_id = g.summary_id) AS reported) AS coming
 WHERE t.id = ANY((SELECT $1::bigint[])::bigint[])
"""  # noqa: S608  (of constants)


async def marked_summaries(
    connection: AsyncConnection | DriverConnection, trial_ids: Sequence[int]
) -> dict[int, BoundedSummary]:
    """Of trials that were marked a moment ago, by id, without those that are not any more: their columns are true."""
    if not trial_ids:
        return {}
    driver = await driver_connection(connection)
    documents: dict[int, dict[str, Any]] = {}
    names: dict[int, int] = {}
    for ident, group, number, folded, tail in await driver.fetch(_SHORTEST, list(trial_ids)):
        document = documents.setdefault(ident, {})
        names[ident] = names.get(ident, 0) + number
        if group is not None:
            summary = document[summary_key(group)] = _group_decoder.decode(folded)
            for report in tail:
                fold(summary, msgspec.json.decode(report), newest=True)
    return {ident: bound(msgspec.to_builtins(document), names=names[ident]) for ident, document in documents.items()}
