"""Routes of experiments, trials and checkpoints against the list of the reference."""

from __future__ import annotations

from services.api.http.routing import shape_of
from services.api.routes.checkpoints import checkpoints
from services.api.routes.experiments import actions as experiment_actions
from services.api.routes.experiments import experiments, model_definitions, searches
from services.api.routes.trials import trials
from tests.scenarios.reference_endpoints import reference_endpoints


def test_routes_are_those_of_the_reference() -> None:
    known = {(endpoint.method, shape_of(endpoint.path)) for endpoint in reference_endpoints()}
    modules = (experiments, experiment_actions, trials, checkpoints, model_definitions, searches)
    routes = [route for module in modules for route in module.ROUTES if not route.raw]
    assert {(route.method, shape_of(route.path)) for route in routes} <= known
    assert len(routes) == 42
