"""The stored form: a minimal configuration, and the parts that appear only when somebody asks for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from libs.config import check_complete, parse_experiment_config, with_defaults

MINIMAL = "{searcher: {name: single, metric: loss}, entrypoint: 'model_def:MyTrial'}"
STORED: dict[str, Any] = {
    "bind_mounts": [],
    "checkpoint_policy": "best",
    "checkpoint_storage": {"save_experiment_best": 0, "save_trial_best": 1, "save_trial_latest": 1},
    "data": {},
    "integrations": None,
    "debug": False,
    "description": None,
    "entrypoint": "model_def:MyTrial",
    "environment": {
        "environment_variables": {"cpu": [], "cuda": [], "rocm": []},
        "force_pull_image": False,
        "image": {
            "cpu": "determinedai/pytorch-ngc-dev:0736b6d",
            "cuda": "determinedai/pytorch-ngc-dev:0736b6d",
            "rocm": "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d",
        },
        "pod_spec": None,
        "ports": {},
        "proxy_ports": [],
        "registry_auth": None,
        "add_capabilities": [],
        "drop_capabilities": [],
    },
    "hyperparameters": {},
    "log_policies": [
        {"name": "CUDA OOM", "pattern": ".*CUDA out of memory.*"},
        {"name": "ECC Error", "pattern": ".*uncorrectable ECC error encountered.*"},
    ],
    "labels": [],
    "max_restarts": 5,
    "min_checkpoint_period": {"batches": 0},
    "min_validation_period": {"batches": 0},
    "name": "Experiment (a-b-c)",
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
    "records_per_epoch": 0,
    "reproducibility": {"experiment_seed": 1234},
    "resources": {
        "devices": [],
        "native_parallel": False,
        "shm_size": None,
        "slots_per_trial": 1,
        "weight": 1,
        "max_slots": None,
        "priority": None,
        "resource_pool": "",
        "is_single_node": None,
    },
    "scheduling_unit": 100,
    "searcher": {
        "name": "single",
        "metric": "loss",
        "smaller_is_better": True,
        "source_trial_id": None,
        "source_checkpoint_uuid": None,
    },
    "slurm": {},
    "workspace": "",
    "project": "",
}


def stored(text: str) -> dict[str, Any]:
    return with_defaults(parse_experiment_config(text), seed=1234, name="Experiment (a-b-c)")


def test_minimal_configuration_has_exactly_these_keys() -> None:
    assert stored(MINIMAL) == STORED


SEARCHER = {"smaller_is_better": True, "source_trial_id": None, "source_checkpoint_uuid": None}
KEPT = {"save_experiment_best": 0, "save_trial_best": 1, "save_trial_latest": 1}
PARTS: list[tuple[str, str, Any]] = [
    ("name: mine", "name", "mine"),
    ("reproducibility: {experiment_seed: 0}", "reproducibility", {"experiment_seed": 0}),
    ("retention_policy: {log_retention_days: 0}", "retention_policy", {"log_retention_days": 0}),
    ("max_restarts: 0", "max_restarts", 0),
    ("debug: false", "debug", False),
    ("min_validation_period: {epochs: 1}", "min_validation_period", {"epochs": 1}),
    (
        "log_policies: [{name: CUDA OOM}, {name: ECC Error}]",
        "log_policies",
        [{"name": "CUDA OOM"}, {"name": "ECC Error"}],
    ),
    ("log_policies: []", "log_policies", STORED["log_policies"]),
    (
        "log_policies: [{name: ECC Error, pattern: x}]",
        "log_policies",
        [{"name": "ECC Error", "pattern": "x"}, STORED["log_policies"][0]],
    ),
    (
        "environment: {pod_spec: {spec: {tolerations: null, hostIPC: true}}}",
        "environment",
        {**STORED["environment"], "pod_spec": {"spec": {"hostIPC": True}}},
    ),
    ("environment: {pod_spec: {$patch: delete}}", "environment", STORED["environment"]),
    (
        "integrations: {webhooks: {webhook_id: [1]}}",
        "integrations",
        {"webhooks": {"webhook_id": [1], "exclude": False}},
    ),
    (
        "searcher: {name: single, metric: m, max_length: 5}",
        "searcher",
        {"name": "single", "metric": "m", "max_length": 5, **SEARCHER},
    ),
    (
        "searcher: {name: random, metric: m, max_trials: 1}",
        "searcher",
        {"name": "random", "metric": "m", "max_trials": 1, "max_concurrent_trials": 16, **SEARCHER},
    ),
    (
        "searcher: {name: grid, metric: m, max_concurrent_trials: 0}",
        "searcher",
        {"name": "grid", "metric": "m", "max_concurrent_trials": 0, **SEARCHER},
    ),
    (
        "searcher: {name: adaptive_asha, metric: m, max_trials: 9, max_time: 8, time_metric: t}",
        "searcher",
        {
            "name": "adaptive_asha",
            "metric": "m",
            "max_trials": 9,
            "max_time": 8,
            "time_metric": "t",
            "mode": "standard",
            "divisor": 4,
            "max_rungs": 5,
            "bracket_rungs": [],
            "max_concurrent_trials": 16,
            **SEARCHER,
        },
    ),
    (
        "searcher: {name: async_halving, metric: m, num_rungs: 2, max_trials: 9, max_time: 8, time_metric: t}",
        "searcher",
        {
            "name": "async_halving",
            "metric": "m",
            "num_rungs": 2,
            "max_trials": 9,
            "max_time": 8,
            "time_metric": "t",
            "divisor": 4,
            "max_concurrent_trials": 16,
            **SEARCHER,
        },
    ),
    (
        "searcher: {name: sync_halving}",
        "searcher",
        {"name": "sync_halving", "divisor": 4, "train_stragglers": True, **SEARCHER},
    ),
    (
        "checkpoint_storage: {type: shared_fs, host_path: /h}",
        "checkpoint_storage",
        {"type": "shared_fs", "host_path": "/h", "storage_path": None, "propagation": "rprivate", **KEPT},
    ),
    (
        "checkpoint_storage: {type: directory, container_path: /c, save_trial_best: 2}",
        "checkpoint_storage",
        {"type": "directory", "container_path": "/c", **KEPT, "save_trial_best": 2},
    ),
    (
        "checkpoint_storage: {type: s3, bucket: b}",
        "checkpoint_storage",
        {
            "type": "s3",
            "bucket": "b",
            "access_key": None,
            "secret_key": None,
            "endpoint_url": None,
            "prefix": None,
            **KEPT,
        },
    ),
    (
        "checkpoint_storage: {type: gcs, bucket: b}",
        "checkpoint_storage",
        {"type": "gcs", "bucket": "b", "prefix": None, **KEPT},
    ),
    (
        "checkpoint_storage: {type: azure, container: c, account_url: u}",
        "checkpoint_storage",
        {"type": "azure", "container": "c", "account_url": "u", "connection_string": None, "credential": None, **KEPT},
    ),
]


@pytest.mark.parametrize(("text", "key", "part"), PARTS, ids=[text for text, _, _ in PARTS])
def test_part_is_completed(text: str, key: str, part: Any) -> None:
    assert stored(text)[key] == part


@pytest.mark.parametrize("text", [MINIMAL, *(text for text, _, _ in PARTS)])
def test_defaults_twice_are_defaults_once(text: str) -> None:
    once = stored(text)
    assert with_defaults(once, seed=5, name="other") == once


def test_stored_form_can_be_submitted_again() -> None:
    config = stored(
        "{searcher: {name: grid, metric: m}, entrypoint: e, labels: [a], resources: {shm_size: 1g},"
        " checkpoint_storage: {type: shared_fs, host_path: /h, storage_path: x},"
        " hyperparameters: {a: 1, b: {c: [1]}}, environment: {environment_variables: [A=1]}}"
    )
    check_complete(config)
    again = with_defaults(parse_experiment_config(json.dumps(config)), seed=5, name="other")
    assert again == config


def test_defaults_are_not_shared_between_experiments() -> None:
    stored(MINIMAL)["environment"]["image"]["cpu"] = "changed"
    stored(MINIMAL)["log_policies"][0]["name"] = "changed"
    assert stored(MINIMAL) == STORED
