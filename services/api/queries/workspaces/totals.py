"""How much is in projects and workspaces: sums of what is counted as it changes, and not of the rows themselves."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Select, Subquery, cast, func, select

from libs.db.tables.experiments import experiment_counts
from libs.db.tables.trials import trial_counts
from libs.db.tables.workspaces import projects

_ACTIVE: Final = ("ACTIVE", "RUNNING")


def experiments_of_projects() -> Subquery:
    """Rows of ``project_id``, ``number`` and ``active``; none for a project that never had an experiment."""
    number, group = experiment_counts.c.number, experiment_counts.c.project_id
    active = _sum(number, experiment_counts.c.state.in_(_ACTIVE))
    return select(group, _sum(number).label("number"), active.label("active")).group_by(group).subquery("experimenting")


def runs_of_projects() -> Subquery:
    """Rows of ``project_id`` and ``number``."""
    group = trial_counts.c.project_id
    return select(group, _sum(trial_counts.c.number).label("number")).group_by(group).subquery("running")


def experiments_of_workspaces() -> Subquery:
    """Rows of ``workspace_id`` and ``number``."""
    group = projects.c.workspace_id
    query: Select[Any] = select(group, _sum(experiment_counts.c.number).label("number"))
    joined = experiment_counts.join(projects, projects.c.id == experiment_counts.c.project_id)
    return query.select_from(joined).group_by(group).subquery("experimenting")


def _sum(number: ColumnElement[int], where: ColumnElement[bool] | None = None) -> ColumnElement[int]:
    summed = func.sum(number) if where is None else func.sum(number).filter(where)
    return cast(func.coalesce(summed, 0), BigInteger)
