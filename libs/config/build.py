"""Builds the configuration that is stored from what a user submits: which layers there are, and in what order.

Source: docs/reference/experiments.md 1.7 (creation pipeline); the steps in between, which look at the database or the
cluster, belong to the caller.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from libs import podspec
from libs.config.complete import check_complete, check_entrypoint, check_search
from libs.config.config_policies import apply_invariants
from libs.config.defaults import with_defaults
from libs.config.experiment import normalise_experiment_config, without_overlong_labels
from libs.config.merge import merge
from libs.config.parts.searcher import check_current_searcher
from libs.config.task_container_defaults import over_task_container_defaults, task_container_defaults_as_config
from libs.errors import InvalidRequest
from libs.shapes.problems import InvalidConfig
from libs.shapes.shape import Object

_INCOMPLETE: Final = (
    "give what the stored configuration lacks in the override configuration, or create a new experiment from a complete"
    " copy of it"
)


def parse_template(name: str, config: Mapping[str, Any]) -> Object:
    """A stored template as a partial configuration in normal form.

    Templates are stored unseen, so the mistakes in them come to light here: raises InvalidRequest, which says whose
    they are. ``resources.slots`` is passed over: a template may be for other tasks too, which count their slots there.
    """
    try:
        return normalise_experiment_config(_without_slots(config))
    except InvalidConfig as error:
        raise InvalidRequest(f"template '{name}': {error}") from error


def build_config(
    user: Object,
    *,
    template: Object | None = None,
    pool_defaults: Mapping[str, Any] | None = None,
    workspace_storage: Mapping[str, Any] | None = None,
    master_storage: Mapping[str, Any] | None = None,
    invariants: Sequence[Mapping[str, Any]] = (),
    resource_pool: str | None = None,
    priority_default: int,
    seed: int,
    name: str,
    managed: bool = True,
) -> Object:
    """The complete configuration of a new experiment (steps 3 and 5 to 11).

    user               what the user wrote, in normal form
    template           the named template in normal form (``parse_template``)
    pool_defaults      task_container_defaults of the pool, the cluster's merged in
    workspace_storage  checkpoint_storage of the workspace, and the cluster's below it (master_storage)
    invariants         invariant configs of the policies, lowest priority first: the workspace's, then the global one
    resource_pool      the resolved name of the pool, which replaces what the user wrote
    priority_default   of the pool
    seed, name         for an experiment whose configuration has none
    managed            whether we run it, so that there has to be something to run, and a search to begin
    Raises InvalidConfig and podspec.InvalidPodPatch. Constraints are checked on the result (config_policies.py).
    """
    below = template or {}
    asked = merge(user, below)
    if managed:
        check_entrypoint(asked)
    slots = (apply_invariants(asked, invariants).get("resources") or {}).get("slots_per_trial", 1)
    defaults = task_container_defaults_as_config(pool_defaults or {}, gpu=slots > 0)
    config = over_task_container_defaults(asked, defaults)
    config["environment"]["pod_spec"] = _pod_spec(defaults, below, user)
    for storage in (workspace_storage, master_storage):
        config = merge(config, _storage_config(storage))
    config = _with_place_in_queue(config, resource_pool, priority_default)
    config = with_defaults(config, seed=seed, name=name)
    config = with_defaults(apply_invariants(config, invariants), seed=seed, name=name)
    check_complete(without_overlong_labels(config))  # each layer was looked at by itself
    if managed:
        check_current_searcher(config)
        check_search(config)
    return config


def continue_config(
    override: Object, stored: Object, *, resource_pool: str, invariants: Sequence[Mapping[str, Any]] = ()
) -> Object:
    """The complete configuration of an experiment that goes on with ``override``, in normal form, over ``stored``.

    resource_pool  the resolved name of the pool that the two ask for together
    invariants     as in ``build_config``
    Raises InvalidConfig and podspec.InvalidPodPatch. Source: docs/reference/experiments.md 7 (step 3).
    """
    config = merge({"resources": {"resource_pool": resource_pool}}, merge(override, stored))
    config = apply_invariants(config, invariants)
    seed = (config.get("reproducibility") or {}).get("experiment_seed")
    config = with_defaults(config, seed=seed, name=config.get("name"))
    try:
        # Labels were stored before there was a limit; those of the override were looked at by themselves.
        check_complete(without_overlong_labels(config))
    except InvalidConfig as error:
        raise InvalidConfig(f"{error.detail}\n{_INCOMPLETE}") from error
    check_current_searcher(config)
    check_entrypoint(config)
    check_search(config)
    return config


def _without_slots(template: Mapping[str, Any]) -> Object:
    resources = template.get("resources")
    if not isinstance(resources, Mapping) or "slots" not in resources:
        return dict(template)
    return {**template, "resources": {key: value for key, value in resources.items() if key != "slots"}}


def _pod_spec(*layers: Object) -> Object:
    """The pod specs of all layers, the lowest first: nulls and directives of one have to meet all those below it."""
    pods = [(layer.get("environment") or {}).get("pod_spec") for layer in layers]
    return functools.reduce(podspec.merge_pod, pods, {})


def _storage_config(storage: Mapping[str, Any] | None) -> Object:
    return normalise_experiment_config({"checkpoint_storage": None if storage is None else dict(storage)})


def _with_place_in_queue(config: Object, resource_pool: str | None, priority_default: int) -> Object:
    placed = merge(config, {"resources": {"priority": priority_default}})
    return placed if resource_pool is None else merge({"resources": {"resource_pool": resource_pool}}, placed)
