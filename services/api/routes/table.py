"""Every route of the api in one table, and an honest refusal for those of the reference that are missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from services.api.access.permission_table import PERMISSIONS
from services.api.access.route_permission import RoutePermission
from services.api.http.routing import Route
from services.api.routes import landing, unimplemented
from services.api.routes.checkpoints import checkpoints, reports
from services.api.routes.cluster import agents, jobs, master, pools
from services.api.routes.experiments import actions, experiments, model_definitions, searches
from services.api.routes.tasks import allocations, context, log_retention, logs, tasks
from services.api.routes.trials import metrics, runs, trials
from services.api.routes.users import sessions, tokens, users
from services.api.routes.workspaces import namespaces, projects, templates, workspaces

_MODULES = (
    agents,
    allocations,
    sessions,
    reports,
    checkpoints,
    master,
    actions,
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
    context,
    logs,
    tasks,
    templates,
    tokens,
    trials,
    users,
    workspaces,
)


def all_routes() -> list[Route]:
    """The whole REST interface. Raises LookupError for a route without a row in access/permission_table.py."""
    routes = guarded(route for module in _MODULES for route in module.ROUTES)
    return [*routes, *unimplemented.unimplemented(routes)]


def guarded(routes: Iterable[Route]) -> list[Route]:
    """The routes, each with the permission that the table gives it. Raises LookupError."""
    return [replace(route, permission=_permission(f"{route.method} {route.path}")) for route in routes]


def _permission(call: str) -> RoutePermission:
    if call not in PERMISSIONS:
        raise LookupError(f"{call}: services/api/access/permission_table.py does not say who may call it")
    return PERMISSIONS[call]
