"""Makes the final configuration of an interactive task: defaults, under a template, under what its user submits.

Which slots and which pool are asked for is known first, since the defaults depend on the pool. Both may come from the
template as well as from the user.

Source: docs/reference/tasks-and-cli.md 2.3 and 2.6; docs/reference/kubernetes.md 6.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from libs import podspec
from libs.cluster.config import TaskContainerDefaults
from libs.errors import InvalidRequest
from libs.shapes.shape import Object
from libs.tasks.interactive.defaults import default_config
from libs.tasks.interactive.overlay import overlay

_OPTIONAL: Final = (
    "fallback_pools",
    "max_slots",
    "native_parallel",
    "preemptible",
    "shm_size",
    "time_limit",
    "topology",
)
"""Resources that are shown only when somebody asked for them."""


class Layers(NamedTuple):
    """In normal form (``layers``); the later one wins."""

    template: Mapping[str, Any]
    submitted: Mapping[str, Any]


class PoolRequest(NamedTuple):
    slots: int
    pool: str
    """"" is the default one."""


def requested(layers: Layers, *, slots: int | None = None) -> PoolRequest:
    """What a task asks of which pool; ``slots`` of a kind of task that has always the same."""
    resources = overlay(*layers).get("resources") or {}
    return PoolRequest(resources.get("slots", 1) if slots is None else slots, resources.get("resource_pool", ""))


def assemble(
    layers: Layers,
    *,
    defaults: TaskContainerDefaults,
    granted: PoolRequest,
    default_priority: int,
    has_files: bool,
) -> Object:
    """The final configuration in the form that clients see; its description may still be empty.

    granted    slots and the pool that was found for them
    has_files  whether its user submits a context
    Raises InvalidRequest for a context beside a working directory, InvalidPodPatch.
    """
    below = overlay(default_config(defaults), layers.template)
    config = overlay(below, layers.submitted)
    resources, environment = config["resources"], config["environment"]
    resources.update(slots=granted.slots, resource_pool=granted.pool)
    if resources["priority"] is None:
        resources["priority"] = default_priority
    for field in _OPTIONAL:
        if resources.get(field) in (None, False):
            resources.pop(field, None)
    if not environment.get("registry_auth"):
        environment.pop("registry_auth", None)
    of_cluster = defaults.gpu_pod_spec if granted.slots > 0 else defaults.cpu_pod_spec
    environment["pod_spec"] = podspec.merge_pod(of_cluster, environment["pod_spec"]) or None
    if has_files:
        _check_free_to_choose(config["work_dir"], below["work_dir"])
        config["work_dir"] = None
    return config


def _check_free_to_choose(chosen: str | None, default: str | None) -> None:
    """Files go to the working directory that every task has; so they cannot go to one that its user chose."""
    if chosen is not None and chosen != default:
        raise InvalidRequest("cannot set work_dir and context directory at the same time")
