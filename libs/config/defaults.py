"""Defaults of a configuration: the form in which it is stored, returned and given to tasks.

Source: docs/reference/experiments.md 1.2 to 1.5 (defaults) and 1.9 (stored form).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from libs import podspec
from libs.config.merge import merge
from libs.config.parts import searcher, storage
from libs.config.parts.log_policies import BUILT_IN
from libs.shapes.shape import Object

CPU_IMAGE: Final = "determinedai/pytorch-ngc-dev:0736b6d"
CUDA_IMAGE: Final = "determinedai/pytorch-ngc-dev:0736b6d"
ROCM_IMAGE: Final = "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"

ENVIRONMENT: Final[Mapping[str, Any]] = {
    "add_capabilities": [],
    "drop_capabilities": [],
    "environment_variables": {"cpu": [], "cuda": [], "rocm": []},
    "force_pull_image": False,
    "image": {"cpu": CPU_IMAGE, "cuda": CUDA_IMAGE, "rocm": ROCM_IMAGE},
    "pod_spec": None,
    "ports": {},
    "proxy_ports": [],
    "registry_auth": None,
}
EXPERIMENT: Final[Mapping[str, Any]] = {
    "bind_mounts": [],
    "checkpoint_policy": "best",
    "checkpoint_storage": dict(storage.COMMON_DEFAULTS),
    "data": {},
    "debug": False,
    "description": None,
    "entrypoint": None,
    "environment": ENVIRONMENT,
    "hyperparameters": {},
    "integrations": None,
    "labels": [],
    "log_policies": BUILT_IN,
    "max_restarts": 5,
    "min_checkpoint_period": {"batches": 0},
    "min_validation_period": {"batches": 0},
    "optimizations": {
        "aggregation_frequency": 1,
        "auto_tune_tensor_fusion": False,
        "average_aggregated_gradients": True,
        "average_training_metrics": True,
        "gradient_compression": False,
        "grad_updates_size_file": None,
        "mixed_precision": "O0",
        "tensor_fusion_cycle_time": 1,
        "tensor_fusion_threshold": 64,
    },
    "pbs": {},
    "perform_initial_validation": False,
    "preemption_timeout": None,
    "profiling": {"enabled": False, "begin_on_batch": 0, "end_after_batch": None, "sync_timings": True},
    "project": "",
    "records_per_epoch": 0,
    "resources": {
        "devices": [],
        "is_single_node": None,
        "max_slots": None,
        "native_parallel": False,
        "priority": None,
        "resource_pool": "",
        "shm_size": None,
        "slots_per_trial": 1,
        "weight": 1,
    },
    "scheduling_unit": 100,
    "slurm": {},
    "workspace": "",
}


def with_defaults(config: Object, *, seed: int | None, name: str | None) -> Object:
    """The stored form of ``config``, which stays unchanged.

    seed  of the experiment, 0 .. 2^32 - 1, unless the configuration has one; usually the time in seconds
    name  of the experiment, unless the configuration has one (names.py)
    None for one of these leaves it open. Done twice, it changes nothing more. Members of unions are filled in once
    their type is known.
    """
    given = {"name": name, "reproducibility": {"experiment_seed": seed}}
    stored = merge(merge(config, _member_defaults(config)), {**_plain(EXPERIMENT), **given})
    pod = podspec.merge_pod(None, stored["environment"]["pod_spec"])
    stored["environment"]["pod_spec"] = pod or None
    return stored


def _member_defaults(config: Object) -> Object:
    """Defaults of those parts that appear only when somebody asks for them."""
    defaults: Object = {}
    kind = config.get("checkpoint_storage", {}).get("type")
    if kind is not None:
        defaults["checkpoint_storage"] = _plain(storage.MEMBER_DEFAULTS.get(kind, {}))
    if config.get("searcher") is not None:
        method = config["searcher"].get("name")
        defaults["searcher"] = _plain({**searcher.COMMON_DEFAULTS, **searcher.MEMBER_DEFAULTS.get(method, {})})
    if (config.get("integrations") or {}).get("webhooks") is not None:
        defaults["integrations"] = {"webhooks": {"exclude": False}}
    return defaults


def _plain(value: Any) -> Any:
    """A copy that may be changed, made of dicts and lists."""
    if isinstance(value, Mapping):
        return {key: _plain(element) for key, element in value.items()}
    return [_plain(element) for element in value] if isinstance(value, tuple | list) else value
