"""The cluster's configuration file: what pools take over from the cluster, and what is refused at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from libs.cluster.config import ClusterConfig
from libs.cluster.loading import load_cluster_config
from libs.errors import InvalidRequest
from tests.unit.libs.cluster.reading import read


def load(tmp_path: Path, *, pool: dict[str, Any] | None, **cluster: Any) -> ClusterConfig:
    path = tmp_path / "cluster.yaml"
    pools = [{"pool_name": "default", **({"task_container_defaults": pool} if pool is not None else {})}]
    path.write_text(yaml.safe_dump({"resource_pools": pools, "task_container_defaults": cluster}))
    return load_cluster_config(path)


CASES: list[tuple[dict[str, Any] | None, dict[str, Any], dict[str, Any]]] = [
    (None, {"network_mode": "host"}, {"network_mode": "host"}),
    # Whatever else a pool says, what it does not mention is the cluster's.
    (
        {"image": "p"},
        {"network_mode": "host", "shm_size_bytes": 1, "preemption_timeout": 7, "startup_hook": "s"},
        {"network_mode": "host", "shm_size_bytes": 1, "preemption_timeout": 7, "startup_hook": "s"},
    ),
    # What it says counts, also where it says what would hold if nobody said anything.
    ({"network_mode": "bridge"}, {"network_mode": "host"}, {"network_mode": "bridge"}),
    ({"force_pull_image": False}, {"force_pull_image": True}, {"force_pull_image": False}),
    ({"startup_hook": ""}, {"startup_hook": "s"}, {"startup_hook": "s"}),
    ({"gpu_pod_spec": {"spec": {}}}, {"cpu_pod_spec": {"spec": {"hostname": "c"}}}, {"gpu_pod_spec": {"spec": {}}}),
    ({"add_capabilities": ["B"]}, {"add_capabilities": ["A"]}, {"add_capabilities": ["A", "B"]}),
    (
        {"environment_variables": ["A=1"]},
        {"environment_variables": ["A=2", "B=3"]},
        {"environment_variables": {kind: ["A=1", "B=3"] for kind in ("cpu", "cuda", "rocm")}},
    ),
    ({}, {}, {"network_mode": "bridge", "shm_size_bytes": 4 * 2**30, "preemption_timeout": 3600}),
]


@pytest.mark.parametrize(("pool", "cluster", "expected"), CASES)
def test_defaults_of_a_pool_lie_over_those_of_the_cluster(
    pool: dict[str, Any] | None, cluster: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    defaults = load(tmp_path, pool=pool, **cluster).defaults_of("default")
    assert {field: getattr(defaults, field) for field in expected} == expected


def test_limit_of_a_pod_is_the_pools_or_the_clusters(tmp_path: Path) -> None:
    cluster = {"kubernetes": {"max_slots_per_pod": 4}}
    assert load(tmp_path, pool={"image": "p"}, **cluster).max_slots_per_pod("default") == 4
    own = {"kubernetes": {"max_slots_per_pod": 2}}
    assert load(tmp_path, pool=own, **cluster).max_slots_per_pod("default") == 2


@pytest.mark.parametrize(
    ("pool", "cluster", "key"),
    [
        ({}, {"image": 5}, "^task_container_defaults: .*image"),
        ({"bind_mounts": [{"nonsense": 1}]}, {}, r"^resource_pools\[0\].task_container_defaults: .*bind_mounts"),
        ({"nonsense": 1}, {}, r"task_container_defaults: .*unknown field `nonsense` - at `\$\.resource_pools\[0\]`$"),
        ({"kubernetes": {"max_slots_per_pod": []}}, {}, r"max_slots_per_pod` - at `\$\.resource_pools\[0\]`$"),
        (
            {"gpu_pod_spec": {"metadata": {"name": "x"}}},
            {"cpu_pod_spec": {"spec": {"hostNetwork": True}}},
            r"^Check Failed! 2 errors found:"
            r"\n\terror found at root.resource_pools\[0\].task_container_defaults.gpu_pod_spec: "
            r"pod Name is not a configurable option: x does not equal "
            r"\n\terror found at root.task_container_defaults.cpu_pod_spec: "
            r"host networking must be configured via master.yaml: expected false, got true$",
        ),
        (
            {"checkpoint_gc_pod_spec": {"spec": 5}},
            {},
            r"checkpoint_gc_pod_spec.spec: expected object, but got integer$",
        ),
        ({}, {"gpu_pod_spec": {"spec": {"volumes": [{"emptyDir": {}}]}}}, r"gpu_pod_spec: .*'name' is missing"),
        ({}, {"cpu_pod_spec": {"spec": {"$patch": "swap"}}}, r"cpu_pod_spec: .*\$patch must be"),
    ],
)
def test_defaults_that_make_no_sense_are_refused_at_once(
    pool: dict[str, Any], cluster: dict[str, Any], key: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidRequest, match=key):
        load(tmp_path, pool=pool, **cluster)


@pytest.mark.parametrize(
    ("tasks", "key"),
    [
        ({"address": "tasks.det.example.com", "main_address": "https://det.example.com"}, "address"),
        ({"address": "https://tasks.det.example.com"}, "main_address"),
        ({"address": "https://tasks.det.example.com/proxy", "main_address": "https://det.example.com"}, "address"),
        ({"address": "https://det.example.com:8443", "main_address": "https://det.example.com"}, "address"),
        ({"main_address": "https://det.example.com"}, "address"),
    ],
)
def test_pages_of_tasks_need_two_host_names(tasks: dict[str, str], key: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"tasks\.{key}"):
        read({"tasks": tasks})


@pytest.mark.parametrize(
    ("scim", "key"),
    [
        ({"enabled": True}, "username"),
        ({"enabled": True, "auth": {"username": "okta"}}, "password"),
        ({"enabled": True, "auth": {"username": "a:b", "password": "c"}}, "username"),
        ({"enabled": True, "auth": {"type": "saml"}}, "type"),
    ],
)
def test_nobody_makes_users_without_a_password(scim: dict[str, Any], key: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"scim\.auth\.{key}"):
        read({"scim": scim})


@pytest.mark.parametrize(
    ("scim", "enabled"),
    [
        ({"enabled": False, "auth": {"type": "basic", "username": None, "password": None}}, False),
        ({"enabled": True, "auth": {"type": "oauth"}}, True),
        ({"enabled": None, "auth": None}, False),
        (None, False),
    ],
)
def test_scim_as_files_have_it(scim: Any, enabled: bool) -> None:
    config, warnings = read({"scim": scim})
    assert (config.scim.enabled, warnings) == (enabled, {})
