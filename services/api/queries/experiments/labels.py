"""Labels in use (docs/reference/experiments.md 6), and the experiments that have some."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, case, func, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.experiments import experiment_labels, experiments, labelled_experiments
from libs.natural_order.sql import natural
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights


async def labels_in_use(connection: AsyncConnection, project_id: int, *, rights: UserRights) -> list[str]:
    """Labels of the experiments of a project, or of all for 0, that the caller may see: those used most first, then by
    name."""
    stored = experiments.c.config["labels"]
    known = case((func.jsonb_typeof(stored) == "array", stored), else_=func.jsonb_build_array())
    each = func.jsonb_array_elements_text(known).table_valued("label").render_derived()
    query = (
        select(each.c.label)
        .select_from(experiments.join(each, true()))
        .where(each.c.label.is_not(None))
        .where(rights.where_project(Action.VIEW_EXPERIMENT, experiments.c.project_id))
        .group_by(each.c.label)
        .order_by(func.count().desc(), natural(each.c.label), each.c.label)
    )
    if project_id:
        query = query.where(experiments.c.project_id == project_id)
    return list(await connection.scalars(query))


def having_labels(labels: Sequence[str]) -> list[ColumnElement[bool]]:
    """Conditions on experiments: each of ``labels``, without a look at configurations."""
    if any("\0" in label for label in labels):
        return [experiment_labels.contains(list(labels))]  # which the database refuses
    return [
        experiments.c.id.in_(
            select(labelled_experiments.c.experiment_id).where(
                labelled_experiments.c.label_key == func.metric_name_key(label)
            )
        )
        for label in dict.fromkeys(labels)
    ]
