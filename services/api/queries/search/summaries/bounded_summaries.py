"""Summaries in lists: a list shows so many metrics of each trial, and says how many more there are.

A trial may have reported a hundred thousand names, and a list may have a hundred such trials. The shortest names stay:
"loss" before "layers.11.attention.head.3.norm". A large document is not taken out of the database for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, case, func
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import DriverConnection, driver_connection
from libs.db.tables.trials import trials
from services.api.wire.base import struct_document, struct_value

MOST_NAMES: Final = 100
_LARGE_BYTES: Final = 8 * 1024
"""As stored, which is compressed."""

# Keys of a document are in the order of their length, those of equal length in the order of their bytes.
_SHORTEST: Final = f"""
SELECT trials.id, of_group.key AS group_key, counted.names, shortest.name, (document -> shortest.name)::text AS summary
  FROM trials
 CROSS JOIN jsonb_each(trials.summary_metrics) AS of_group
 CROSS JOIN LATERAL (
       SELECT CASE jsonb_typeof(of_group.value) WHEN 'object' THEN of_group.value ELSE '{{}}' END AS document) AS named
 CROSS JOIN LATERAL (SELECT count(*) AS names FROM jsonb_object_keys(document)) AS counted
  LEFT JOIN LATERAL (
       SELECT name FROM jsonb_object_keys(document) WITH ORDINALITY AS key (name, place)
        ORDER BY place LIMIT {MOST_NAMES}) AS shortest ON true
 WHERE trials.id = ANY($1::bigint[])
"""  # noqa: S608 - of constants


class BoundedSummary(Struct, frozen=True):
    """A summary of at most ``MOST_NAMES`` metrics, as it goes over the wire, and how many more the trial has."""

    document: dict[str, Any]
    left_out: int = 0


def summary_unless_large() -> ColumnElement[Any]:
    """The summary of a trial; NULL for one that ``large_summaries`` has to be asked for."""
    summary = trials.c.summary_metrics
    return case((func.pg_column_size(summary) <= _LARGE_BYTES, summary))


async def large_summaries(
    connection: AsyncConnection | DriverConnection, trial_ids: Sequence[int]
) -> dict[int, BoundedSummary]:
    """Of those that are there, by id."""
    if not trial_ids:
        return {}
    driver = await driver_connection(connection)
    documents: dict[int, dict[str, dict[str, Any]]] = {}
    names: dict[int, dict[str, int]] = {}
    for ident, group, count, name, summary in await driver.fetch(_SHORTEST, list(trial_ids)):
        of_group = documents.setdefault(ident, {}).setdefault(group, {})
        names.setdefault(ident, {})[group] = count
        if name is not None:
            of_group[name] = msgspec.json.decode(summary)
    return {ident: bound(document, names=sum(names[ident].values())) for ident, document in documents.items()}


def bounded(text: str) -> BoundedSummary:
    """Of a summary as the database writes it."""
    document = msgspec.json.decode(text)
    names = sum(len(of_group) for of_group in document.values() if isinstance(of_group, dict))
    return bound(document) if names > MOST_NAMES else BoundedSummary(struct_document(document, text))


def bound(summary: Mapping[str, Any], *, names: int | None = None) -> BoundedSummary:
    """names  how many the whole summary has, if this one has only the shortest of each group"""
    there = [(group, name) for group, of_group in summary.items() if isinstance(of_group, dict) for name in of_group]
    total = len(there) if names is None else names
    if len(there) <= MOST_NAMES:
        return BoundedSummary(struct_value(summary), total - len(there))
    kept = set(sorted(there, key=_by_length)[:MOST_NAMES])
    document = {
        group: {name: value for name, value in of_group.items() if (group, name) in kept}
        if isinstance(of_group, dict)
        else of_group
        for group, of_group in summary.items()
    }
    return BoundedSummary(struct_value(document), total - MOST_NAMES)


def _by_length(series: tuple[str, str]) -> tuple[int, bytes, str]:
    group, name = series
    encoded = name.encode()
    return len(encoded), encoded, group
