"""Every route of the api in one table, and an honest refusal for those of the reference that are missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from importlib import import_module

from libs.imports.one_by_one import IMPORTING
from services.api.access.audit_table import audit_rule
from services.api.access.permission_table import PERMISSIONS
from services.api.access.rights.call_table import CALLS
from services.api.access.route_permission import RoutePermission
from services.api.http.routing import Route, RouteToLoad
from services.api.routes import landing, pages, updates
from services.api.routes.charts import profiler
from services.api.routes.checkpoints import reports
from services.api.routes.cluster import master
from services.api.routes.tasks import allocations, context, logs, tasks
from services.api.routes.trials import metrics, runs
from services.api.routes.users import sessions
from services.api.routes.when_called import CALLS as CALLS_OF
from services.api.routes.when_called import IDEMPOTENT, STREAMS

_MODULES = (
    allocations,
    context,
    landing,
    logs,
    master,
    metrics,
    pages,
    profiler,
    reports,
    runs,
    sessions,
    tasks,
    updates,
)
"""What training processes call: they get no answer from a module that has been replaced since the api has started."""


def all_routes() -> list[Route]:
    """The whole REST interface. Raises LookupError for a route without a row in access/permission_table.py."""
    return [*_of_training(), *(route for module in CALLS_OF for route in _routes_of(module).values())]


def routes_to_serve() -> list[Route | RouteToLoad]:
    """The same, without what clients may never call. Raises the same."""
    later = [
        RouteToLoad(
            method=method,
            path=path,
            permission=_permission(call),
            load=partial(_load, module, call),
            stream=module in STREAMS,
            idempotent=call in IDEMPOTENT,
        )
        for module, calls in CALLS_OF.items()
        for call in calls
        for method, path in (call.split(),)
    ]
    return [*_of_training(), *later]


def _of_training() -> list[Route]:
    return guarded(route for module in _MODULES for route in module.ROUTES)


def _load(module: str, call: str) -> Route:
    return _routes_of(module)[call]


@cache
def _routes_of(module: str) -> dict[str, Route]:
    """By call. Imports the module."""
    with IMPORTING:
        imported = import_module(f"{__package__}.{module}")
    return {f"{route.method} {route.path}": route for route in guarded(imported.ROUTES)}


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
