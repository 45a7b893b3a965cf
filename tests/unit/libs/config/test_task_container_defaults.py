"""Defaults of cluster and pool: how they cover each other, and what experiments take from them."""

from __future__ import annotations

from typing import Any

import pytest

from libs.config import InvalidConfig, merge_task_container_defaults, task_container_defaults_as_config


def test_experiments_take_their_part_of_the_defaults() -> None:
    tcd = {
        "image": {"cpu": "c", "gpu": "g"},
        "environment_variables": ["A=1"],
        "force_pull_image": True,
        "registry_auth": {"username": "u"},
        "add_capabilities": ["X"],
        "devices": ["/h:/c"],
        "cpu_pod_spec": {"spec": {"hostname": "cpu"}},
        "gpu_pod_spec": {"spec": {"hostname": "gpu"}},
        "log_policies": [{"name": "n"}],
        "shm_size_bytes": 4294967296,
        "network_mode": "host",
        "startup_hook": "true",
    }
    config = task_container_defaults_as_config(tcd, gpu=False)
    assert config == {
        "environment": {
            "image": {"cpu": "c", "cuda": "g"},
            "environment_variables": {kind: ["A=1"] for kind in ("cpu", "cuda", "rocm")},
            "force_pull_image": True,
            "registry_auth": {"username": "u"},
            "add_capabilities": ["X"],
            "pod_spec": {"spec": {"hostname": "cpu"}},
        },
        "resources": {"devices": [{"host_path": "/h", "container_path": "/c", "mode": "mrw"}]},
        "log_policies": [{"name": "n"}],
        "preemption_timeout": 3600,
    }
    assert task_container_defaults_as_config(tcd, gpu=True)["environment"]["pod_spec"]["spec"] == {"hostname": "gpu"}


def test_bad_defaults_are_refused() -> None:
    with pytest.raises(InvalidConfig, match="host networking must be configured via"):
        task_container_defaults_as_config({"cpu_pod_spec": {"spec": {"hostNetwork": True}}}, gpu=False)


POOLS: list[tuple[str, Any, Any, Any]] = [
    ("network_mode", None, "host", "host"),
    ("network_mode", "bridge", "host", "bridge"),
    ("startup_hook", "", "cluster", "cluster"),
    ("gpu_pod_spec", {"spec": {"a": 1}}, {"spec": {"b": 2}}, {"spec": {"a": 1}}),
    ("cpu_pod_spec", None, {"spec": {"b": 2}}, {"spec": {"b": 2}}),
    ("image", {"cpu": "p"}, "c", {"cpu": "p", "cuda": "c", "rocm": "c"}),
    (
        "environment_variables",
        ["A=1", "B"],
        ["A=2", "C=3"],
        {kind: ["A=1", "B", "C=3"] for kind in ("cpu", "cuda", "rocm")},
    ),
    ("add_capabilities", ["C", "A"], ["B", "A"], ["A", "B", "C"]),
    ("log_policies", [{"name": "a"}], [{"name": "a", "pattern": "x"}, {"name": "b"}], [{"name": "a"}, {"name": "b"}]),
    (
        "devices",
        ["/p:/c"],
        ["/x:/c", "/y:/d"],
        [
            {"host_path": "/p", "container_path": "/c", "mode": "mrw"},
            {"host_path": "/y", "container_path": "/d", "mode": "mrw"},
        ],
    ),
]


@pytest.mark.parametrize(("field", "pool", "cluster", "merged"), POOLS)
def test_pool_covers_cluster(field: str, pool: Any, cluster: Any, merged: Any) -> None:
    assert merge_task_container_defaults({field: pool}, {field: cluster, "x": 1}) == {field: merged, "x": 1}
