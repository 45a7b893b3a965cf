"""``master.yaml`` files as administrators have them: they work as they stand, and nothing is passed over in silence."""

from __future__ import annotations

from typing import Any

import pytest
import structlog
import yaml

from libs.cluster.config import ClusterConfig, PoolConfig
from libs.cluster.loading import load_cluster_config
from libs.cluster.resolution import resolve_pool
from libs.errors import InvalidRequest
from services.api.queries.cluster.master import shown_config
from tests.unit.libs.cluster.reading import assert_refused, kubernetes, read

FROM_A_CHART = """
config_version: null
log: {level: info, color: true}
db: {user: postgres, password: p, host: db, port: "5432", name: determined}
port: 8081
enable_cors: true
launch_error: false
security:
  default_task: {user: root, uid: 0, group: root, gid: 0}
  authz: {type: basic, rbac_ui_enabled: null}
  tls: {cert: /tls/cert, key: /tls/key}
  ssh: {key_type: ED25519}
checkpoint_storage: {type: shared_fs, host_path: /checkpoints, save_trial_best: 1}
telemetry: {enabled: true, segment_master_key: k}
observability: {enable_prometheus: true}
reserved_ports: [12350, 12360]
resource_manager:
  type: kubernetes
  name: here
  namespace: research
  max_slots_per_pod: 8
  default_scheduler: coscheduler
  default_cpu_resource_pool: aux
  default_gpu_resource_pool: compute
  master_service_name: determined-master-service-x
  determined_master_host: master
  determined_master_ip: 10.0.0.1
  determined_master_port: 8080
  determined_master_scheme: http
  kubeconfig_path: ~/.kube/config
  leave_kubernetes_resources: false
  fluent: {image: "fluent/fluent-bit:1.6", uid: 1, gid: 1}
resource_pools:
  - pool_name: compute
    max_cpu_containers_per_agent: 3
    agent_reconnect_wait: 25s
    agent_reattach_enabled: true
    provider: {type: aws, max_instances: 3}
    scheduler: {type: fair_share}
    anything: {at: all}
  - {pool_name: aux, max_cpu_containers_per_agent: -1, max_aux_containers_per_agent: 5, description: null}
task_container_defaults:
  shm_size_bytes: null
  slurm: {partition: p}
"""
NEW_IN_WARNINGS = {
    "log",
    "db",
    "port",
    "enable_cors",
    "telemetry",
    "observability",
    *(
        f"resource_manager.{key}"
        for key in (
            "name",
            "namespace",
            "default_cpu_resource_pool",
            "default_gpu_resource_pool",
            "master_service_name",
            "determined_master_host",
            "determined_master_ip",
            "determined_master_port",
            "determined_master_scheme",
            "kubeconfig_path",
            "leave_kubernetes_resources",
            "fluent",
        )
    ),
    *(
        f"resource_pools[0].{key}"
        for key in (
            "max_cpu_containers_per_agent",
            "agent_reconnect_wait",
            "agent_reattach_enabled",
            "provider",
            "anything",
        )
    ),
    "resource_pools[1].max_cpu_containers_per_agent",
    "task_container_defaults.slurm",
}


def test_a_file_of_the_chart_is_taken_as_it_stands() -> None:
    config, warnings = read(yaml.safe_load(FROM_A_CHART))
    manager = config.resource_manager
    assert (manager.cluster_name, manager.default_namespace, manager.default_scheduler) == (
        "here",
        "research",
        "coscheduler",
    )
    assert (manager.default_aux_resource_pool, manager.default_compute_resource_pool) == ("aux", "compute")
    assert [pool.max_aux_containers_per_agent for pool in config.resource_pools] == [3, 5]
    assert config.reserved_ports == (12350, 12360)
    assert (config.security.tls.cert, config.security.tls.key) == ("/tls/cert", "/tls/key")
    assert config.task_container_defaults.shm_size_bytes == 4 * 2**30
    assert warnings.keys() == NEW_IN_WARNINGS


def test_a_file_of_the_chart_can_be_shown() -> None:
    shown = shown_config(read(yaml.safe_load(FROM_A_CHART))[0], log_level="info")
    assert shown["resource_manager"]["cluster_name"] == "here"
    assert [pool["pool_name"] for pool in shown["resource_pools"]] == ["compute", "aux"]


def test_what_is_not_taken_as_written_is_in_the_log(tmp_path: Any) -> None:
    path = tmp_path / "master.yaml"
    path.write_text(yaml.safe_dump(kubernetes(fluent={"image": "x"}, name="here")))
    with structlog.testing.capture_logs() as lines:
        load_cluster_config(path)
    assert [(line["log_level"], line["event"], line["key"]) for line in lines] == [
        ("warning", "cluster_config.not_as_written", "resource_manager.fluent"),
        ("warning", "cluster_config.not_as_written", "resource_manager.name"),
    ]
    assert "kubernetes.shipper" in lines[0]["says"]


def test_new_names_win_over_old_ones() -> None:
    config, warnings = read(kubernetes(name="old", cluster_name="new", namespace="a", default_namespace="b"))
    assert (config.resource_manager.cluster_name, config.resource_manager.default_namespace) == ("new", "b")
    assert warnings["resource_manager.name"] == "ignored: cluster_name is given as well"


@pytest.mark.parametrize("pools", [None, []])
def test_without_pools_there_is_one(pools: object) -> None:
    assert read({"resource_pools": pools})[0].resource_pools == (PoolConfig(pool_name="default"),)


def test_a_file_may_be_empty() -> None:
    assert read(None) == (ClusterConfig(), {})
    everything_null = dict.fromkeys(("resource_manager", "security", "task_container_defaults", "launch_error"))
    assert read(everything_null) == (ClusterConfig(), {})


def test_machines_with_agents_become_the_machines_of_launchers() -> None:
    config, warnings = read({"resource_manager": {"type": "agent", "require_authentication": True, "client_ca": ""}})
    assert config.resource_manager.type == "process"
    assert warnings.keys() == {
        "resource_manager.type",
        "resource_manager.require_authentication",
        "resource_manager.client_ca",
    }


def test_there_may_be_no_default_pools() -> None:
    config, _ = read({**kubernetes(no_default_resource_pools=True), "resource_pools": [{"pool_name": "a"}]})
    assert resolve_pool(config, name="a", slots=1) == "a"
    assert resolve_pool(config, name="", slots=1, workspace_compute="a") == "a"
    for slots in (0, 1):
        with pytest.raises(InvalidRequest, match=r"^no default resource pool set$"):
            resolve_pool(config, name="", slots=slots)
    assert config.representative_pool == "a"


def test_default_pools_have_to_be_there() -> None:
    assert_refused(
        {"resource_pools": [{"pool_name": "a"}]},
        "resource_manager.default_compute_resource_pool: there is no resource pool named 'default'",
    )


def test_scheduler_of_pods() -> None:
    for value in ("", "coscheduler"):
        assert read(kubernetes(default_scheduler=value))[0].resource_manager.default_scheduler == value
    assert_refused(
        kubernetes(default_scheduler="volcano"),
        "only blank or ``coscheduler`` values allowed for Kubernetes scheduler",
    )
    with pytest.raises(InvalidRequest, match="default_scheduler: priority is deprecated"):
        read(kubernetes(default_scheduler="priority"))


PREEMPTION = [
    ("by itself", {}, True, "preemption is read as resource_manager.scheduler.preemption: true"),
    ("with priorities", {"scheduler": {"type": "priority", "default_priority": 9}}, True, "preemption is read as"),
    ("with the default type", {"scheduler": {"fitting_policy": "worst"}}, True, "preemption is read as"),
    ("that is switched off", {"scheduler": {"preemption": False}}, False, "preemption is ignored"),
    ("without levels", {"scheduler": {"type": "fair_share"}}, False, "preemption is ignored"),
]


@pytest.mark.parametrize(
    ("more", "preempts", "said"), [case[1:] for case in PREEMPTION], ids=[c[0] for c in PREEMPTION]
)
def test_the_preemption_mode_is_that_of_the_queue(more: dict[str, Any], preempts: bool, said: str) -> None:
    config, warnings = read(kubernetes(default_scheduler="preemption", **more))
    manager = config.resource_manager
    assert manager.default_scheduler == ""
    assert manager.scheduler is not None
    assert manager.scheduler.preemption is preempts
    for name, value in more.get("scheduler", {}).items():
        assert getattr(manager.scheduler, name) == value
    assert warnings["resource_manager.default_scheduler"].startswith(said)


@pytest.mark.parametrize("port", [0, 65536, "x"])
def test_ports_that_are_none_are_not_reserved(port: object) -> None:
    with pytest.raises(InvalidRequest, match="reserved_ports"):
        read({"reserved_ports": [port]})


ROUND_ROBIN = {"type": "round_robin"}


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"nonsense": 1}, "unknown field `nonsense`"),
        (kubernetes(nonsense=1), "unknown field `nonsense`"),
        ({"security": {"authz": {"type": "everybody"}}}, "security.authz.type"),
        ({"resource_manager": {"scheduler": ROUND_ROBIN}}, "resource_manager.scheduler.type: round_robin is not"),
        (
            {"resource_pools": [{"pool_name": "default", "scheduler": ROUND_ROBIN}]},
            r"resource_pools\[0\].scheduler.type: round_robin is not",
        ),
        ({"resource_pools": [{"pool_name": "default"}] * 2}, "^resource pool has a duplicate name: default$"),
        ({"security": {"tls": {"cert": "/c"}}}, "^security.tls: cert and key are needed together"),
        ({"security": {"tls": {"ca": "/c"}}}, "^security.tls.ca needs cert and key"),
        ({"resource_manager": "kubernetes"}, "resource_manager"),
        ({"resource_pools": "default"}, "resource_pools"),
        ({"resource_pools": ["default"]}, "resource_pools"),
        (["resource_manager"], "Expected `object`"),
    ],
)
def test_what_cannot_be_had_is_refused(document: object, text: str) -> None:
    with pytest.raises(InvalidRequest, match=text):
        read(document)


def more(*, manager: dict[str, Any] | None = None, pool: str | None = "b", **root: Any) -> dict[str, Any]:
    """A document with a second resource manager."""
    second = {"type": "kubernetes", "cluster_name": "there", "max_slots_per_pod": 1, **(manager or {})}
    pools = [{"pool_name": pool}] if pool is not None else []
    managers = [{"resource_manager": second, "resource_pools": pools}]
    return {**kubernetes(**root), "additional_resource_managers": managers}


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (
            more(manager={"type": "agent"}),
            "additional_resource_managers only supports resource managers of type: kubernetes",
        ),
        (more(pool=None), "for additional_resource_managers, you must specify at least one resource pool"),
        (more(manager={"cluster_name": "default"}), "resource manager has a duplicate name: default"),
        (more(name="there"), "resource manager has a duplicate name: there"),
        (
            more(pool="default"),
            "resource pool has a duplicate name: default; names are unique across all resource managers",
        ),
        (more(max_slots_per_pod=None), "must provide resource_manager.max_slots_per_pod"),
        (more(manager={"max_slots_per_pod": None}), "must provide resource_manager.max_slots_per_pod"),
        (
            more(),
            "additional_resource_managers: only one resource manager is supported; name the pools of all clusters in "
            "resource_pools, and give the launcher of each the kubeconfig of its cluster (kubernetes.kubeconfig)",
        ),
        (
            {"additional_resource_managers": {"a": 1}},
            "additional_resource_managers: a list of {resource_manager, resource_pools} is expected",
        ),
    ],
)
def test_there_is_one_resource_manager(document: dict[str, Any], text: str) -> None:
    assert_refused(document, text)


@pytest.mark.parametrize("managers", [None, []])
def test_no_further_resource_managers_may_be_said(managers: object) -> None:
    assert read({"additional_resource_managers": managers}) == (ClusterConfig(), {})
