from __future__ import annotations

import subprocess
import sys

from services.api.http.routing import shape_of
from services.api.routes.table import all_routes
from services.api.routes.users import scim
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


def test_an_idle_api_carries_no_numerics() -> None:
    code = "import sys, services.api.main; assert 'numpy' not in sys.modules, 'numpy takes 30 MB'"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=180)
