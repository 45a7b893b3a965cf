"""The defaults that a cluster and its pools give to the containers of every task, as layers below the user's own.

Source: docs/reference/experiments.md 1.7 (step 6); docs/reference/kubernetes.md 6.1 (steps 1 to 3) and 15.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from libs.config.experiment import normalise_experiment_config
from libs.config.merge import Merge, list_keyed_by, merge
from libs.config.parts.environment import SLOT_TYPES, environment_variables, image
from libs.config.parts.log_policies import merge_log_policies
from libs.config.parts.mounts import bind_mounts, devices
from libs.shapes.shape import Object, Shape

PREEMPTION_TIMEOUT_S: Final = 3600

_ENVIRONMENT_FIELDS: Final = (
    "image",
    "environment_variables",
    "force_pull_image",
    "registry_auth",
    "add_capabilities",
    "drop_capabilities",
)
_TOP_FIELDS: Final = ("bind_mounts", "slurm", "pbs", "log_policies")
_SCHEDULER_ARGS: Final = (("slurm", "sbatch_args"), ("pbs", "pbsbatch_args"))


def task_container_defaults_as_config(tcd: Mapping[str, Any], *, gpu: bool) -> Object:
    """The part of the defaults that experiments take over, as a partial configuration in normal form.

    gpu  whether the task has slots, and so takes the pod spec for slots rather than the one without
    Other fields (shm_size_bytes, network_mode, startup_hook ...) concern the launcher. Raises InvalidConfig.
    """
    environment = {field: tcd.get(field) for field in _ENVIRONMENT_FIELDS}
    timeout = tcd.get("preemption_timeout")
    return normalise_experiment_config(
        {
            **{field: tcd.get(field) for field in _TOP_FIELDS},
            "environment": {**environment, "pod_spec": tcd.get("gpu_pod_spec" if gpu else "cpu_pod_spec")},
            "resources": {"devices": tcd.get("devices")},
            "preemption_timeout": PREEMPTION_TIMEOUT_S if timeout is None else timeout,
        }
    )


def over_task_container_defaults(config: Object, defaults: Object) -> Object:
    """Merge ``config`` over the result of ``task_container_defaults_as_config``.

    Differs from ``merge`` for the arguments of batch schedulers: there the user's come after the defaults.
    """
    merged = merge(config, defaults)
    for section, field in _SCHEDULER_ARGS:
        low = (defaults.get(section) or {}).get(field)
        high = (config.get(section) or {}).get(field)
        if low is not None and high is not None:
            merged[section][field] = [*low, *high]
    return merged


def merge_task_container_defaults(pool: Mapping[str, Any], cluster: Mapping[str, Any]) -> Object:
    """The defaults of a pool over those of its cluster; both stay unchanged.

    Pod specs replace each other whole. Nothing is filled in here, so a pool that says nothing about a field, such as
    network_mode, leaves the cluster's value in place.
    """
    merged = {**cluster, **{key: value for key, value in pool.items() if value not in (None, "")}}
    for field, rule in _POOL_RULES.items():
        high, low = _normal(field, pool.get(field)), _normal(field, cluster.get(field))
        if high is not None and low is not None:
            merged[field] = rule(high, low)
    return merged


def _normal(field: str, value: Any) -> Any:
    """The value in its normal form, or as it is when there is something wrong with it; checks come elsewhere."""
    shape = _SHAPES.get(field)
    if shape is None or value is None:
        return value
    read = shape(value, field)
    return value if read.problems else read.value


def _images(high: Object, low: Object) -> Object:
    return {**low, **high}


def _variables(high: Object, low: Object) -> Object:
    """Per slot type: the pool's, then those of the cluster whose names are new."""
    merged: Object = {}
    for slot_type in SLOT_TYPES:
        own = high.get(slot_type) or []
        names = {variable.split("=", 1)[0] for variable in own}
        inherited = [entry for entry in low.get(slot_type) or [] if entry.split("=", 1)[0] not in names]
        merged[slot_type] = [*own, *inherited]
    return merged


def _sorted_union(high: list[str], low: list[str]) -> list[str]:
    return sorted({*high, *low})


_SHAPES: Final[Mapping[str, Shape]] = {
    "image": image,
    "environment_variables": environment_variables,
    "bind_mounts": bind_mounts,
    "devices": devices,
}
_POOL_RULES: Final[Mapping[str, Merge]] = {
    "image": _images,
    "environment_variables": _variables,
    "add_capabilities": _sorted_union,
    "drop_capabilities": _sorted_union,
    "bind_mounts": list_keyed_by("container_path"),
    "devices": list_keyed_by("container_path"),
    "log_policies": merge_log_policies,
}
