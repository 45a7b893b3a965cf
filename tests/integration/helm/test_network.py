"""NetworkPolicies let through what the picture of the parts shows (docs/architecture.md 2), and nothing else."""

from __future__ import annotations

from typing import Any, Final

import pytest
import yaml

from tests.harness.helm import Release, render
from tests.integration.helm.conftest import VALUES, Rendered, options_for

PARTS: Final = ("master", "scheduler", "logs", "launcher", "db", "nats", "migration", "smoke-test")
TRACES: Final = "RESOLUTE_TELEMETRY__TRACES_ENDPOINT"
TALKS: Final = {
    ("master", "db", 5432),
    ("master", "nats", 4222),
    ("scheduler", "db", 5432),
    ("scheduler", "nats", 4222),
    ("logs", "db", 5432),
    ("logs", "nats", 4222),
    ("launcher", "nats", 4222),
    ("migration", "db", 5432),
    ("smoke-test", "db", 5432),
    ("smoke-test", "master", 8081),
    ("nats", "nats", 6222),
}


def labels_of(release: Release) -> dict[str, dict[str, str]]:
    found = {}
    for _, template in release.pods():
        labels = template["metadata"]["labels"]
        found[labels["determined-system"]] = labels
    return found


def lets_through(rules: list[Any], direction: str, peer: dict[str, str], port: int) -> bool:
    """Whether a rule names this pod of the same namespace by its labels, or anybody."""
    for rule in rules:
        if port not in [each["port"] for each in rule.get("ports", [])]:
            continue
        peers = rule.get(direction)
        if peers is None:
            return True
        for each in peers:
            wanted = each.get("podSelector", {}).get("matchLabels")
            if wanted is not None and wanted.items() <= peer.items():
                return True
    return False


@pytest.mark.parametrize("values", ["defaults", "own_selectors"])
def test_pods_reach_what_they_need_and_no_other_part(values: str, rendered: Rendered) -> None:
    release = rendered(values)
    labels = labels_of(release)
    policies = {part: release.get("NetworkPolicy", f"resolute-{part}")["spec"] for part in PARTS}
    for part in PARTS:
        assert policies[part]["podSelector"]["matchLabels"].items() <= labels[part].items()
        assert policies[part]["policyTypes"] == ["Ingress", "Egress"]
    talks = {
        (source, target, port)
        for source in PARTS
        for target in PARTS
        for port in (5432, 4222, 6222, 8081)
        if lets_through(policies[source]["egress"], "to", labels[target], port)
        and lets_through(policies[target]["ingress"], "from", labels[source], port)
    }
    assert talks == TALKS


def test_everybody_reaches_the_api_and_the_log_intake(rendered: Rendered) -> None:
    release = rendered("defaults")
    for part in ("master", "logs"):
        spec = release.get("NetworkPolicy", f"resolute-{part}")["spec"]
        assert {"ports": [{"port": 8081}]} in spec["ingress"]


def test_only_the_api_reaches_tasks_at_any_port(rendered: Rendered) -> None:
    release = rendered("defaults")
    is_task = {"matchExpressions": [{"key": "determined.ai/task_id", "operator": "Exists"}]}
    rule = {"to": [{"namespaceSelector": {}, "podSelector": is_task}]}
    for part in PARTS:
        egress = release.get("NetworkPolicy", f"resolute-{part}")["spec"]["egress"]
        assert (rule in egress) == (part == "master"), part


@pytest.mark.parametrize(
    ("values", "port"), [("storage_s3", 9000), ("storage_gcs", 443), ("storage_azure", 443), ("defaults", None)]
)
def test_the_api_reaches_the_storage_of_checkpoints(values: str, port: int | None, rendered: Rendered) -> None:
    egress = rendered(values).get("NetworkPolicy", "resolute-master")["spec"]["egress"]
    assert ({"ports": [{"port": port}]} in egress) == (port is not None)


@pytest.mark.parametrize(("values", "expected"), [("enterprise", True), ("defaults", False)])
def test_the_api_reaches_the_login_provider(values: str, expected: bool, rendered: Rendered) -> None:
    egress = rendered(values).get("NetworkPolicy", "resolute-master")["spec"]["egress"]
    assert ({"ports": [{"port": 8443}]} in egress) == expected


@pytest.mark.parametrize(("values", "expected"), [("traces", True), ("defaults", False)])
def test_each_service_reaches_the_collector_of_traces(values: str, expected: bool, rendered: Rendered) -> None:
    release = rendered(values)
    told = [name for name, template in release.pods() if TRACES in str(template)]
    parts = {labels["determined-system"] for labels in labels_of(release).values()}
    reach = {
        part
        for part in parts
        if {"ports": [{"port": 4318}]} in release.get("NetworkPolicy", f"resolute-{part}")["spec"]["egress"]
    }
    assert reach == ({"master", "scheduler", "logs", "launcher"} if expected else set())
    assert len(told) == len(reach)


def test_an_external_server_is_reached_on_its_port(rendered: Rendered) -> None:
    database = rendered("external_database").get("NetworkPolicy", "resolute-scheduler")["spec"]["egress"]
    assert {"ports": [{"port": 5433}]} in database
    bus = rendered("external_nats").get("NetworkPolicy", "resolute-launcher")["spec"]["egress"]
    assert {"ports": [{"port": 4333}]} in bus


def test_who_else_may_come_in_is_said_in_the_values(rendered: Rendered) -> None:
    release = rendered("network")
    database = release.get("NetworkPolicy", "resolute-db")["spec"]["ingress"][0]["from"]
    bus = release.get("NetworkPolicy", "resolute-nats")["spec"]["ingress"][0]["from"]
    status = release.get("NetworkPolicy", "resolute-scheduler")["spec"]["ingress"][0]["from"]
    assert {"podSelector": {"matchLabels": {"app": "backup"}}} in database
    assert {"namespaceSelector": {"matchLabels": {"events": "yes"}}} in bus
    assert status == [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]


def test_nobody_reads_metrics_unless_the_values_say_who(rendered: Rendered) -> None:
    release = rendered("defaults")
    for part in PARTS:
        for rule in release.get("NetworkPolicy", f"resolute-{part}")["spec"]["ingress"]:
            ports = {each["port"] for each in rule["ports"]}
            assert 9090 not in ports, part
            if 8222 in ports:
                servers = {"release": "rel", "determined-system": "nats"}
                assert rule["from"] == [{"podSelector": {"matchLabels": servers}}]


def launcher_network(release: Release, pool: str = "default") -> dict[str, Any]:
    """What a launcher is told of the network of its tasks."""
    prefix = "RESOLUTE_KUBERNETES__TASK_NETWORK__"
    variables = release.environment("Deployment", release.launcher_of(pool))
    return {
        name.removeprefix(prefix).lower(): yaml.safe_load(value)
        for name, value in variables.items()
        if name.startswith(prefix)
    }


def test_launchers_close_in_the_tasks_of_the_namespace_that_the_chart_makes(rendered: Rendered) -> None:
    release = rendered("own_namespace_defaults")
    network = launcher_network(release)
    assert network["policies"] is True
    labels = labels_of(release)
    for key, part in (("api", "master"), ("log_intake", "logs")):
        # By own labels and by the former ones: the policy of a task stays as it is over upgrades and rollbacks.
        assert len(network[key]) == 2
        for peer in network[key]:
            assert peer["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "ml"}}
            assert peer["podSelector"]["matchLabels"].items() <= labels[part].items()
            assert not peer["podSelector"]["matchLabels"].items() <= labels["nats"].items()
    assert {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"} <= set(network["closed"])
    assert network["egress"] == network["ingress"] == []
    assert launcher_network(rendered("defaults")) == {}  # beside the installation, as in upgraded releases


@pytest.mark.parametrize(
    "cleared", ["networkPolicy.tasks", "networkPolicy.tasks.closed", "networkPolicy.tasks.dnsPorts"]
)
def test_what_is_cleared_is_as_if_it_were_not_given(rendered: Rendered, cleared: str) -> None:
    name = "own_namespace_defaults"
    given = render(VALUES / f"{name}.yaml", *options_for(name), "--set", f"{cleared}=null")
    assert launcher_network(given) == launcher_network(rendered(name))


def test_what_tasks_reach_all_the_same_is_said_in_the_values(rendered: Rendered) -> None:
    release = rendered("own_namespace")
    for pool in ("default", "elsewhere"):
        network = launcher_network(release, pool)
        assert network["closed"] == [
            "10.0.0.0/17",
            "10.0.128.0/18",
            "192.0.2.0/24",
            "198.51.100.7/32",
            "169.254.0.0/16",
        ]
        assert network["dns_ports"] == [53, 5353]
        assert network["ingress"] == [{"from": [{"podSelector": {"matchLabels": {"app": "gateway"}}}]}]
        metadata = [{"ipBlock": {"cidr": each}} for each in ("169.254.169.254/32", "169.254.170.0/24")]
        assert network["egress"] == [
            {"to": [{"ipBlock": {"cidr": "203.0.113.0/24"}}]},
            {"to": metadata},
            {"to": [{"ipBlock": {"cidr": "10.1.2.3/32"}}], "ports": [{"port": 9000, "protocol": "TCP"}]},
        ]


@pytest.mark.parametrize(("values", "ports"), [("defaults", "443, 6443"), ("network", "16443")])
def test_launchers_know_which_policy_may_keep_them_from_the_api_server(
    values: str, ports: str, rendered: Rendered
) -> None:
    release = rendered(values)
    hint = release.environment("Deployment", release.launcher_of("default"))["RESOLUTE_KUBERNETES__UNREACHABLE_HINT"]
    assert f"NetworkPolicy resolute-launcher-rel lets launchers reach the ports {ports}" in hint
    assert "networkPolicy.kubernetesApiPorts" in hint
