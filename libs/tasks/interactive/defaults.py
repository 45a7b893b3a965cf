"""What lies below every layer of configuration: the defaults of the cluster and its pool, and our own below them.

Source: docs/reference/tasks-and-cli.md 2.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from libs.cluster.config import TaskContainerDefaults
from libs.config.defaults import CPU_IMAGE, CUDA_IMAGE, ROCM_IMAGE
from libs.config.parts import environment as parts
from libs.config.parts.mounts import bind_mounts, devices
from libs.shapes.shape import Object, Shape


def default_config(defaults: TaskContainerDefaults) -> Object:
    """A whole configuration in the form that clients see, but for the pod spec of the defaults.

    That one is merged in another way, when all layers are there (``assembly``). An image that the defaults give for one
    type of slot leaves those of the others as they are.
    """
    images = {"cpu": CPU_IMAGE, "cuda": CUDA_IMAGE, "rocm": ROCM_IMAGE, **(_normal(parts.image, defaults.image) or {})}
    variables = _normal(parts.environment_variables, defaults.environment_variables) or {}
    environment = {
        "image": images,
        "environment_variables": {slot_type: entries for slot_type, entries in variables.items() if entries},
        "proxy_ports": None,
        "ports": None,
        "force_pull_image": defaults.force_pull_image,
        "pod_spec": None,
        "add_capabilities": _or_none(defaults.add_capabilities),
        "drop_capabilities": _or_none(defaults.drop_capabilities),
    }
    if defaults.registry_auth:
        environment["registry_auth"] = {key: value for key, value in defaults.registry_auth.items() if value}
    return {
        "description": "",
        "bind_mounts": _or_none(_normal(bind_mounts, defaults.bind_mounts)),
        "environment": environment,
        "resources": {
            "slots": 1,
            "weight": 1,
            "resource_pool": "",
            "priority": None,
            "is_single_node": None,
            "devices": _or_none(_normal(devices, defaults.devices)),
        },
        "entrypoint": [],
        "idle_timeout": None,
        "notebook_idle_type": "kernels_or_terminals",
        "work_dir": defaults.work_dir or None,
        "debug": False,
        "pbs": {},
        "slurm": {},
    }


def _normal(shape: Shape, value: Any) -> Any:
    """In normal form; no service starts with defaults that have none."""
    return None if value is None else shape(value, "task_container_defaults").value


def _or_none(items: Sequence[Any]) -> list[Any] | None:
    return list(items) or None
