"""Totals of lists: how many rows fulfil their conditions.

Clients read on until ``endIndex`` reaches ``total``, so it is exact. Where conditions ask about nothing but the columns
by which rows are counted as they change (``experiment_counts``, ``trial_counts``), it costs what there are groups. So
it does for those of one label (``label_counts``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlalchemy import BigInteger, Column, ColumnElement, Integer, Select, Table, cast, func, literal_column, select
from sqlalchemy.sql.visitors import iterate, replacement_traverse

from libs.db.tables.experiments import PART_BITS, experiments, label_counts
from libs.db.tables.users import users
from libs.db.tables.workspaces import projects, workspaces
from services.api.queries.ordering import joined_for

_BESIDE: Final = frozenset({users, projects, workspaces})


def total_in_groups(table: Table, counts: Table, conditions: Sequence[ColumnElement[bool]]) -> Select[Any] | None:
    """The number of rows of ``table`` as a sum of ``counts``; None where a condition asks about more than they know.

    Of other tables conditions may ask about the owner, the project and the workspace, of which each row has one.
    """
    if not _are_known(table, counts, conditions):
        return None

    def replace(element: Any, **_: Any) -> Any:
        is_counted = isinstance(element, Column) and element.table is table
        return counts.c[element.name] if is_counted else None

    joined = joined_for(conditions, counts, owner_id=counts.c.get("owner_id"), project_id=counts.c.project_id)
    total = cast(func.coalesce(func.sum(counts.c.number), 0), BigInteger)
    return select(total).select_from(joined).where(*(replacement_traverse(each, {}, replace) for each in conditions))


def total_of_label(label: str, conditions: Sequence[ColumnElement[bool]]) -> Select[Any] | None:
    """The number of experiments that have ``label`` and fulfil ``conditions``, as ``total_in_groups`` has it."""
    total = total_in_groups(experiments, label_counts, conditions)
    # No label has a NUL, and no text that is given to the database.
    return None if total is None or "\0" in label else total.where(label_counts.c.label == label)


def by_part(counted: Select[Any], experiment_id: ColumnElement[int]) -> Select[Any]:
    """Numbers of rows by the parts that their experiments are in (libs/db/tables/experiments.py), part by part."""
    (number,) = counted.selected_columns
    part = experiment_id.op(">>", return_type=BigInteger())(literal_column(str(PART_BITS), Integer))
    return counted.with_only_columns(part.label("part"), number.label("number"), maintain_column_froms=True).group_by(
        part
    )


def _are_known(table: Table, counts: Table, conditions: Collection[ColumnElement[bool]]) -> bool:
    for condition in conditions:
        for element in iterate(condition):
            if not isinstance(element, Column):
                continue
            if element.table is table:
                if element.name not in counts.c:
                    return False
            elif element.table not in _BESIDE or (element.table is users and "owner_id" not in counts.c):
                return False
    return True
