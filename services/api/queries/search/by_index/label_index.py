"""Filters by a text in labels (``tags contains``): the labels that have it are found first, and then who has these.

Labels are lists of texts, and a filter looks for its text in the list as JSON has it. A text that is within one label
there, and nothing between two of them, is looked for in each label that there is, which are few.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlalchemy import ColumnElement, false, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.engine import driver_connection
from libs.db.tables.experiments import labelled_experiments
from services.api.queries.prepared import ESCAPE, escaped
from services.api.queries.search.by_index.value_index import only_field
from services.api.queries.search.language.filters import Field, Group, Operator
from services.api.queries.search.language.values import text_of

MOST_LABELS: Final = 10_000
"""Labels that are looked at: where there are more, a look at each experiment does not take longer."""
COLUMN: Final = "tags"
_WITHIN: Final = re.compile(r'[^\s"\[\],](?:[^"\[\],]*[^\s"\[\],])?')
_HASHED: Final = "\x01"
"""Is in the key of a label that is too long for an index (``metric_name_key``)."""
# Each is the first after the one before it: as many probes as there are labels, not as experiments have them.
_LABELS: Final = f"""
WITH RECURSIVE each_label (label, number) AS (
       SELECT min(label_key), 1 FROM labelled_experiments
        UNION ALL
       SELECT (SELECT min(label_key) FROM labelled_experiments WHERE label_key > each_label.label), number + 1
         FROM each_label
        WHERE label IS NOT NULL AND number <= $2)
SELECT label, number > $2 AS is_beyond
  FROM each_label
 WHERE label IS NOT NULL
   AND (to_jsonb(label)::text ILIKE $1 ESCAPE '{ESCAPE}' OR number > $2 OR strpos(label, $3) > 0)
"""  # noqa: S608  (of constants)


async def labels_asked_for(connection: AsyncConnection, root: Group | Field | None) -> list[str] | None:
    """The labels that a filter amounts to: who has one of them is let through. None where it asks for anything else, or
    its labels are not found by an index."""
    field = None if root is None else only_field(root)
    if field is None or field.column != COLUMN or field.operator is not Operator.CONTAINS:
        return None
    text = text_of(field)
    if not _WITHIN.fullmatch(text) or "\0" in text:
        return None
    driver = await driver_connection(connection)
    rows = await driver.fetch(_LABELS, f"%{escaped(text)}%", MOST_LABELS, _HASHED)
    if any(is_beyond or _HASHED in label for label, is_beyond in rows):
        return None
    return [label for label, _ in rows]


def having_one_of(experiment_id: ColumnElement[int], labels: Sequence[str]) -> ColumnElement[bool]:
    """Whether an experiment has one of ``labels``, without a look at its configuration."""
    if not labels:
        return false()
    is_it = any_of(labelled_experiments.c.label_key, labels)
    return experiment_id.in_(select(labelled_experiments.c.experiment_id).where(is_it))
