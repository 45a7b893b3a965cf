"""Every route of the api in one table, and an honest refusal for those of the reference that are missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from services.api.access.audit_table import audit_rule
from services.api.access.permission_table import PERMISSIONS
from services.api.access.rights.call_table import CALLS
from services.api.access.route_permission import RoutePermission
from services.api.http.routing import Route
from services.api.routes import landing, pages, updates
from services.api.routes.charts import metric_names, profiler, series, streams
from services.api.routes.checkpoints import checkpoints, reports
from services.api.routes.cluster import (
    agents,
    audit,
    check,
    cluster_message,
    jobs,
    limits,
    maintenance,
    master,
    pool_bindings,
    pools,
    prometheus,
    shares,
    usage,
    waiting,
)
from services.api.routes.experiments import actions, experiments, model_definitions, searches
from services.api.routes.generic_tasks import generic_tasks
from services.api.routes.interactive import launches, lifecycle
from services.api.routes.models import models, versions
from services.api.routes.search import tables
from services.api.routes.tasks import allocations, context, log_retention, logs, tasks
from services.api.routes.trials import metrics, run_actions, runs, trials, unmanaged
from services.api.routes.users import groups, oauth, roles, scim, sessions, sso, tokens, users
from services.api.routes.webhooks import event_webhooks, webhooks
from services.api.routes.workspaces import activity, config_policies, namespaces, projects, templates, workspaces

_MODULES = (
    activity,
    agents,
    allocations,
    audit,
    sessions,
    sso,
    reports,
    roles,
    checkpoints,
    cluster_message,
    config_policies,
    maintenance,
    master,
    actions,
    experiments,
    generic_tasks,
    groups,
    jobs,
    landing,
    launches,
    lifecycle,
    limits,
    log_retention,
    metric_names,
    metrics,
    model_definitions,
    models,
    namespaces,
    oauth,
    pages,
    pool_bindings,
    pools,
    profiler,
    projects,
    prometheus,
    run_actions,
    runs,
    scim,
    tables,
    searches,
    series,
    shares,
    streams,
    context,
    logs,
    tasks,
    templates,
    tokens,
    trials,
    unmanaged,
    updates,
    usage,
    users,
    versions,
    waiting,
    check,
    webhooks,
    event_webhooks,
    workspaces,
)


def all_routes() -> list[Route]:
    """The whole REST interface. Raises LookupError for a route without a row in access/permission_table.py."""
    return guarded(route for module in _MODULES for route in module.ROUTES)


def guarded(routes: Iterable[Route]) -> list[Route]:
    """The routes, each with what the tables give it: permission, audit rule and needs. Raises LookupError."""
    return [
        replace(
            route,
            permission=_permission(f"{route.method} {route.path}"),
            audit=audit_rule(route.method, route.path),
            needs=CALLS.get(f"{route.method} {route.path}"),
        )
        for route in routes
    ]


def _permission(call: str) -> RoutePermission:
    if call not in PERMISSIONS:
        raise LookupError(f"{call}: services/api/access/permission_table.py does not say who may call it")
    return PERMISSIONS[call]
