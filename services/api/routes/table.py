"""Every route of the api in one table, and an honest refusal for those of the reference that are missing."""

from __future__ import annotations

from services.api.http.routing import Route
from services.api.routes import (
    agents,
    allocations,
    auth,
    checkpoint_reports,
    checkpoints,
    cluster,
    experiment_actions,
    experiments,
    jobs,
    landing,
    log_retention,
    metrics,
    model_definitions,
    namespaces,
    pools,
    projects,
    runs,
    searches,
    task_context,
    task_logs,
    tasks,
    templates,
    tokens,
    trials,
    unimplemented,
    users,
    workspaces,
)

_MODULES = (
    agents,
    allocations,
    auth,
    checkpoint_reports,
    checkpoints,
    cluster,
    experiment_actions,
    experiments,
    jobs,
    landing,
    log_retention,
    metrics,
    model_definitions,
    namespaces,
    pools,
    projects,
    runs,
    searches,
    task_context,
    task_logs,
    tasks,
    templates,
    tokens,
    trials,
    users,
    workspaces,
)


def all_routes() -> list[Route]:
    """The whole REST interface."""
    routes = [route for module in _MODULES for route in module.ROUTES]
    return [*routes, *unimplemented.unimplemented(routes)]
