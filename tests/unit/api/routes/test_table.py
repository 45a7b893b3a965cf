from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

from services.api import routes as package
from services.api.http.routing import Route, RouteToLoad, shape_of
from services.api.routes.table import all_routes, routes_to_serve
from services.api.routes.users import scim
from services.api.routes.when_called import CALLS as CALLS_OF
from tests.scenarios.reference_endpoints import reference_endpoints

PAGES = {"/", "/det", "/det/{rest:path}", "/det/interactive/{rest:path}", "/det/login", "/det/wait/{rest:path}"}
LOGIN = {"/api/v1/auth/login", "/oidc/sso", "/oidc/callback"}
# Their callers are no users, and tests/integration/api/users/ has who may call them.
OF_PROVIDERS = {*(route.path for route in scim.ROUTES), "/oauth2/authorize", "/oauth2/token"}
PUBLIC = {*PAGES, *LOGIN, *OF_PROVIDERS, "/info", "/api/v1/master", "/api/v1/master/telemetry"}


def test_every_endpoint_of_the_reference_is_there_once() -> None:
    assert len(reference_endpoints()) == 261
    shapes = [(route.method, shape_of(route.path)) for route in all_routes()]
    assert len(shapes) == len(set(shapes))
    missing = [
        one
        for one in reference_endpoints()
        # The application itself answers that one.
        if one.path != "/health" and (one.method, shape_of(one.path)) not in shapes
    ]
    assert missing == []


def test_nothing_is_public_by_mistake() -> None:
    public = {route.path for route in all_routes() if not route.permission.needs_token}
    assert public - PUBLIC == set()


def test_what_makes_something_is_never_made_twice() -> None:
    """A commit may have succeeded though its connection was lost, so only these are done again for a task."""
    repeated = {route.path.removeprefix("/api/v1/") for route in all_routes() if route.idempotent}
    assert {route.method for route in all_routes() if route.idempotent} == {"POST", "PUT"}
    assert repeated == {
        "allocations/{allocationId}/signals/ack_preemption",
        "allocations/{allocationId}/signals/pending_preemption",
        "allocations/{allocationId}/ready",
        "allocations/{allocationId}/waiting",
        "allocations/{allocationId}/proxy_address",
        "allocations/{allocationId}/acceleratorData",
        "allocations/{allocationId}/all_gather",
        "allocations/{allocationId}/notify_container_running",
        "allocations/{allocationId}/resources/{resourcesId}/daemon",
        "checkpoints",
        "notebooks/{notebookId}/report_idle",
        "trials/profiler/metrics",
        "trials/{trialId}/metrics",
        "trials/{trialId}/training_metrics",
        "trials/{trialId}/validation_metrics",
        "trials/{trialId}/progress",
        "trials/{trialId}/early_exit",
        "trials/{trialId}/runner/metadata",
        "runs/start",
        "runs/{runId}/metadata",
        "trial-source-info",
        "task/logs",
        "/task-logs",
    }


@pytest.mark.parametrize("module", CALLS_OF)
def test_the_calls_of_a_module_that_is_loaded_when_called_are_written_down(module: str) -> None:
    routes = import_module(f"{package.__name__}.{module}").ROUTES
    assert sorted(CALLS_OF[module]) == sorted(f"{route.method} {route.path}" for route in routes)


def test_every_module_with_routes_is_in_the_table() -> None:
    served = {f"{route.method} {route.path}" for route in routes_to_serve()}
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for route in getattr(import_module(found.name), "ROUTES", ()):
            assert f"{route.method} {route.path}" in served, found.name


def test_what_is_loaded_when_it_is_called_is_what_was_announced() -> None:
    later = [route for route in routes_to_serve() if isinstance(route, RouteToLoad)]
    loaded = [route.load() for route in later]

    def said(route: Route | RouteToLoad) -> tuple[object, ...]:
        return route.method, route.path, route.permission, route.stream, route.idempotent

    assert [said(route) for route in loaded] == [said(route) for route in later]
    # Who has no token is refused before the route is loaded, in the shape that it would have.
    with_token = [(one, route) for one, route in zip(later, loaded, strict=True) if route.permission.needs_token]
    assert [route.path for one, route in with_token if route.raw != one.raw or route.write_error] == []
    at_once = [route for route in routes_to_serve() if isinstance(route, Route)]
    assert [*at_once, *loaded] == all_routes()


def test_what_training_processes_call_is_loaded_at_the_start() -> None:
    later = [route.load() for route in routes_to_serve() if isinstance(route, RouteToLoad)]
    assert [route.path for route in later if route.idempotent] == ["/api/v1/notebooks/{notebookId}/report_idle"]


def test_an_idle_api_carries_no_numerics() -> None:
    code = "import sys, services.api.main; assert 'numpy' not in sys.modules, 'numpy takes 30 MB'"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=180)
