from __future__ import annotations

import subprocess
import sys

from services.api.http.routing import Auth, shape_of
from services.api.routes.table import all_routes
from services.api.routes.unimplemented import reference_endpoints

PUBLIC = {"/", "/det", "/det/{rest:path}", "/info", "/api/v1/auth/login", "/api/v1/master", "/api/v1/master/telemetry"}


def test_every_endpoint_of_the_reference_has_one_answer() -> None:
    shapes = [(route.method, shape_of(route.path)) for route in all_routes()]
    assert len(shapes) == len(set(shapes))
    missing = [
        one
        for one in reference_endpoints()
        if one.path.startswith("/api/v1/") and (one.method, shape_of(one.path)) not in shapes
    ]
    assert missing == []


def test_nothing_is_public_by_mistake() -> None:
    public = {
        route.path
        for route in all_routes()
        if route.auth is Auth.NONE and not route.summary.endswith("is not available in this release")
    }
    assert public - PUBLIC == set()


def test_an_idle_api_carries_no_numerics() -> None:
    code = "import sys, services.api.main; assert 'numpy' not in sys.modules, 'numpy takes 30 MB'"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
