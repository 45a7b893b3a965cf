"""Would it run, where and when: for whoever is about to submit an experiment."""

from __future__ import annotations

from typing import Final

from services.api.access.rights.needs import require_sources
from services.api.actions.cluster.queue_check import check_queue
from services.api.actions.experiments.create import prepare_experiment
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.routes.experiments.experiments import require_project
from services.api.wire.cluster.check import CheckResponse
from services.api.wire.experiments.experiments import CreateExperimentRequest


async def check(call: Call[App, None, CreateExperimentRequest]) -> CheckResponse:
    """Check what is submitted as if it was, and ask the scheduler when it would start. Nothing is stored."""
    app = call.app
    new = await prepare_experiment(app, call.body, require=require_project(call), now=app.clock.now())
    await require_sources(call, new.config.get("searcher") or {})
    start, sooner = await check_queue(app, new, call.principal.user_id)
    resources = new.config["resources"]
    priority = resources["priority"]
    return CheckResponse(
        start=start,
        trials=len(new.search.creates),
        username=call.principal.username,
        workspace_id=new.project.workspace_id,
        project_id=new.project.project_id,
        priority=app.cluster.default_priority(new.pool) if priority is None else priority,
        weight=resources["weight"],
        max_slots=resources["max_slots"],
        warnings=list(new.warnings),
        sooner=sooner,
    )


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/resolute/check",
        handler=check,
        body=CreateExperimentRequest,
        response=CheckResponse,
        summary="When an experiment would start if it was submitted now",
    ),
)
