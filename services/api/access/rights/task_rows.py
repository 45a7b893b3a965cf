"""Rows of tasks that a caller may know of: interactive and generic ones by their workspace, others by their
experiment."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, or_, select, true

from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import tasks
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.access.rights.tensorboards import sees_all_it_shows


def visible_tasks(rights: UserRights) -> ColumnElement[bool]:
    """Condition on rows of ``tasks``: the caller may see it, or the experiment that it belongs to."""
    if rights.workspaces_where(Action.VIEW_TASK) is None and rights.workspaces_where(Action.VIEW_EXPERIMENT) is None:
        return true()
    mine = select(experiments.c.id).where(rights.where_project(Action.VIEW_EXPERIMENT, experiments.c.project_id))
    return or_(
        tasks.c.experiment_id.in_(mine),
        and_(
            tasks.c.experiment_id.is_(None),
            rights.where(Action.VIEW_TASK, tasks.c.workspace_id),
            sees_all_it_shows(rights, tasks.c.task_id),
        ),
    )
