"""Labels in use (docs/reference/experiments.md 6), and the experiments that have some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ARRAY, BigInteger, ColumnElement, Select, Text, case, column, func, literal, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.experiments import experiment_labels, experiments, labelled_experiments
from libs.db.tables.workspaces import projects
from libs.natural_order.sql import natural
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.project_parts import Part, PartReader, ProjectParts


async def labels_in_use(
    connection: AsyncConnection, project_id: int, parts: ProjectParts, *, rights: UserRights
) -> list[str]:
    """Labels of the experiments of a project, or of all for 0, that the caller may see: those used most first, then by
    name."""
    if rights.workspaces_where(Action.VIEW_EXPERIMENT) is None:
        of_all = await parts.of_project(connection, project_id, _LABELS)
        return await _in_order(connection, of_all)
    visible = rights.where_project(Action.VIEW_EXPERIMENT, projects.c.id)
    seen = set(await connection.scalars(select(projects.c.id).where(visible)))
    counts: Counter[str] = Counter()
    for (project, label), count in (await parts.of_project(connection, project_id, _LABELS_BY_PROJECT)).items():
        if project in seen:
            counts[label] += count
    return await _in_order(connection, counts)


async def _in_order(connection: AsyncConnection, counts: Mapping[str, int]) -> list[str]:
    """As the database has it, which knows the order of its texts."""
    if not counts:
        return []
    used = func.unnest(literal(list(counts), ARRAY(Text)), literal(list(counts.values()), ARRAY(BigInteger)))
    each = used.table_valued(column("label", Text), column("number", BigInteger), name="used").render_derived()
    ordered = select(each.c.label).order_by(each.c.number.desc(), natural(each.c.label), each.c.label)
    return list(await connection.scalars(ordered))


async def _labels(connection: AsyncConnection, part: Part) -> Counter[str]:
    rows = await connection.execute(_counted(part))
    counts: Counter[str] = Counter()
    for _, label, count in rows:
        counts[label] += count
    return counts


async def _labels_by_project(connection: AsyncConnection, part: Part) -> Counter[tuple[int, str]]:
    rows = await connection.execute(_counted(part))
    return Counter({(project, label): count for project, label, count in rows})


_LABELS: Final = PartReader[Counter[str]]("labels", _labels, Counter, Counter.update)
_LABELS_BY_PROJECT: Final = PartReader[Counter[tuple[int, str]]](
    "labels by project", _labels_by_project, Counter, Counter.update
)


def _counted(part: Part) -> Select[Any]:
    stored = experiments.c.config["labels"]
    known = case((func.jsonb_typeof(stored) == "array", stored), else_=func.jsonb_build_array())
    each = func.jsonb_array_elements_text(known).table_valued("label").render_derived()
    query = (
        select(experiments.c.project_id, each.c.label, func.count())
        .select_from(experiments.join(each, true()))
        .where(each.c.label.is_not(None), experiments.c.id >= part.first, experiments.c.id < part.end)
        .group_by(experiments.c.project_id, each.c.label)
    )
    return query.where(experiments.c.project_id == part.project_id) if part.project_id else query


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
