"""The pool in which the trials of an experiment will run (docs/reference/experiments.md 1.7, steps 4 and 5)."""

from __future__ import annotations

from typing import Any

from libs.cluster.resolution import resolve_pool
from libs.errors import InvalidRequest
from services.api.actions.experiments.project import ProjectRef
from services.api.actions.possible_pools import names_fallbacks
from services.api.actions.resource_request import check_resources
from services.api.app import App
from services.api.wire.experiments.experiments import LaunchWarning

Object = dict[str, Any]


def choose_pool(app: App, asked: Object, project: ProjectRef) -> tuple[str, list[LaunchWarning]]:
    """The pool that a configuration asks for, or the default one of its workspace; and what may never fit there.

    Raises InvalidRequest for a pool that does not exist, or could never run it.
    """
    resources = asked.get("resources") or {}
    slots = resources.get("slots_per_trial", 1)
    try:
        pool = resolve_pool(
            app.cluster,
            name=resources.get("resource_pool") or "",
            slots=slots,
            workspace_compute=project.default_compute_pool,
            workspace_aux=project.default_aux_pool,
            workspace_id=project.workspace_id,
            unavailable=project.unavailable_pools,
        )
        single = bool(resources.get("is_single_node"))
        return pool, check_resources(
            app.cluster,
            app.capacity.of(pool),
            pool=pool,
            slots=slots,
            single_pod=single,
            has_fallbacks=names_fallbacks(asked),
        )
    except InvalidRequest as error:
        raise InvalidRequest(f"invalid resource configuration: {error}") from error
