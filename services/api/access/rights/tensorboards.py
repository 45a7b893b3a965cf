"""TensorBoards show what experiments have written, so whoever sees one has to see all of these
(docs/reference/platform.md 6)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, cast, func, or_, select, true

from libs.db.tables.experiments import experiments
from libs.db.tables.interactive import interactive_tasks
from libs.db.tables.trials import trials
from libs.db.tables.workspaces import projects
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights


def sees_all_it_shows(rights: UserRights, task_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Condition on rows of tasks: the caller may see all experiments of the TensorBoard, and of other tasks always."""
    if rights.workspaces_where(Action.VIEW_ARTIFACTS) is None:
        return true()
    # Under names of their own: rows of tasks may be joined with all of these.
    board, experiment, project = interactive_tasks.alias(), experiments.alias(), projects.alias()
    of_trials = select(trials.c.experiment_id).where(trials.c.id.in_(_ids(board.c.trial_ids)))
    is_shown = or_(experiment.c.id.in_(_ids(board.c.experiment_ids)), experiment.c.id.in_(of_trials))
    hidden = (
        select(experiment.c.id)
        .select_from(board.join(experiment, is_shown).join(project, project.c.id == experiment.c.project_id))
        .where(board.c.task_id == task_id, ~rights.where(Action.VIEW_ARTIFACTS, project.c.workspace_id))
    )
    return ~hidden.exists()


def _ids(document: ColumnElement[Any]) -> Select[int]:
    element = func.jsonb_array_elements_text(document).column_valued()
    return select(cast(element, BigInteger))
