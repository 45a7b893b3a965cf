"""Would it run, where and when: for users who are about to submit an experiment or launch a task."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from libs.config.yaml_text import parse_text
from libs.errors import InvalidRequest
from libs.tasks.interactive.kinds import InteractiveType
from services.api.access.rights.actions import Action
from services.api.access.rights.needs import require_in, require_sources
from services.api.actions.cluster.queue_check import check_queue
from services.api.actions.cluster.submissions import Submission, of_experiment, of_generic_task, of_interactive_task
from services.api.actions.experiments.create import prepare_experiment
from services.api.actions.generic_tasks.create import prepare_generic_task
from services.api.actions.interactive.home import Home
from services.api.actions.interactive.prepare import prepare
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.routes.experiments.experiments import require_project
from services.api.routes.generic_tasks.generic_tasks import require_task_project
from services.api.wire.cluster.check import CheckedPool, CheckedTaskType, CheckResponse, CheckTaskRequest
from services.api.wire.experiments.experiments import CreateExperimentRequest, LaunchWarning
from services.api.wire.generic_tasks.generic_tasks import CreateGenericTaskRequest
from services.api.wire.interactive.common import LaunchRequest

_INTERACTIVE: Final[Mapping[CheckedTaskType, InteractiveType]] = {
    CheckedTaskType.NOTEBOOK: "NOTEBOOK",
    CheckedTaskType.SHELL: "SHELL",
    CheckedTaskType.COMMAND: "COMMAND",
}


async def check(call: Call[App, None, CreateExperimentRequest]) -> CheckResponse:
    """Check what is submitted as if it was, and ask the scheduler when it would start. Nothing is stored."""
    app = call.app
    new = await prepare_experiment(app, call.body, require=require_project(call), now=app.clock.now())
    await require_sources(call, new.config.get("searcher") or {})
    submission, trials = of_experiment(new), len(new.search.creates)
    return await _answer(call, submission, trials=trials, project_id=new.project.project_id, warnings=new.warnings)


async def check_task(call: Call[App, None, CheckTaskRequest]) -> CheckResponse:
    """The same of a notebook, shell, command or generic task."""
    body = call.body
    if body.type is CheckedTaskType.GENERIC:
        return await _check_generic_task(call)
    if body.type not in _INTERACTIVE:
        names = ", ".join(one for one in CheckedTaskType if one is not CheckedTaskType.UNSPECIFIED)
        raise InvalidRequest(f"type: has to be one of {names}")
    config = await asyncio.to_thread(parse_text, body.config) if body.config.strip() else {}
    if not isinstance(config, dict):
        raise InvalidRequest("config: has to be a mapping")

    def require_home(home: Home) -> None:
        require_in(call.rights, Action.CREATE_TASK, "workspace", home.workspace_id, workspace_id=home.workspace_id)

    launch = LaunchRequest(config=config, template_name=body.template, workspace_id=body.workspace_id)
    prepared = await prepare(call.app, _INTERACTIVE[body.type], launch, rights=call.rights, require_home=require_home)
    return await _answer(call, of_interactive_task(prepared), warnings=prepared.warnings)


async def _check_generic_task(call: Call[App, None, CheckTaskRequest]) -> CheckResponse:
    body = call.body
    if body.template or body.workspace_id:
        raise InvalidRequest("a generic task belongs to a project (projectId), and is not merged into a template")
    wanted = CreateGenericTaskRequest(config=body.config, project_id=body.project_id)
    new = await prepare_generic_task(call.app, wanted, call.principal, require=require_task_project(call))
    return await _answer(call, of_generic_task(new), project_id=new.project.project_id, warnings=new.warnings)


async def _answer(
    call: Call[App, None, Any],
    submission: Submission,
    *,
    trials: int = 0,
    project_id: int = 0,
    warnings: Sequence[LaunchWarning],
) -> CheckResponse:
    start, sooner = await check_queue(call.app, submission, call.principal.user_id)
    resources = submission.config["resources"]
    priority = resources["priority"]
    return CheckResponse(
        start=start,
        trials=trials,
        username=call.principal.username,
        workspace_id=submission.workspace_id,
        project_id=project_id,
        priority=call.app.cluster.default_priority(submission.pool) if priority is None else priority,
        weight=resources["weight"],
        max_slots=submission.max_slots,
        warnings=list(warnings),
        unfit_pools=[CheckedPool(resource_pool=one.pool, reason=one.reason) for one in submission.unfit],
        sooner=sooner,
    )


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/resolute/check",
        handler=check,
        body=CreateExperimentRequest,
        response=CheckResponse,
        summary="Check when an experiment would start if it was submitted now",
    ),
    Route(
        method="POST",
        path="/api/v1/resolute/check/tasks",
        handler=check_task,
        body=CheckTaskRequest,
        response=CheckResponse,
        summary="Check when a notebook, shell, command or generic task would start if it was launched now",
    ),
)
