"""What the network policy of an allocation lets through."""

from __future__ import annotations

from typing import Any

import pytest

from libs.settings import InvalidSettings, load
from services.launcher.backends.kubernetes.settings import KubernetesSettings, TaskNetworkSettings
from services.launcher.settings import LauncherSettings
from tests.unit.launcher.backends.kubernetes.builders import build, traits
from tests.unit.launcher.specs import trial

API = {"podSelector": {"matchLabels": {"part": "api"}}}
INTAKE = {"podSelector": {"matchLabels": {"part": "logs"}}}


def policy(**fields: Any) -> dict[str, Any]:
    settings = TaskNetworkSettings(policies=True, api=(API,), log_intake=(INTAKE,), **fields)
    made = build(trial(), task_network=settings)
    (found,) = made.network_policies
    assert found["metadata"]["name"] == made.name
    spec: dict[str, Any] = found["spec"]
    return spec


def test_there_is_none_unless_it_is_asked_for() -> None:
    assert build(trial()).network_policies == ()


def test_it_selects_the_pods_of_the_allocation_and_no_others() -> None:
    selected = policy()["podSelector"]["matchLabels"]
    pod = build(trial()).job["spec"]["template"]["metadata"]["labels"]
    other = build(trial(), "1.x.2").job["spec"]["template"]["metadata"]["labels"]
    elsewhere = build(trial(), pool="other").job["spec"]["template"]["metadata"]["labels"]
    assert selected.items() <= pod.items()
    assert not selected.items() <= other.items()
    assert not selected.items() <= elsewhere.items()
    assert traits().pool != "other"


def test_tasks_are_reached_by_the_api_and_by_one_another() -> None:
    spec = policy()
    own = {"podSelector": spec["podSelector"]}
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"] == [{"from": [own, API]}]
    assert {"to": [own]} in spec["egress"]


def test_tasks_reach_the_services_on_their_port_only() -> None:
    assert {"to": [API, INTAKE], "ports": [{"port": 8081, "protocol": "TCP"}]} in policy()["egress"]


def test_outside_is_everything_but_the_closed_ranges_of_the_same_family() -> None:
    spec = policy(closed=("10.0.0.0/8", "fd00::/8", "169.254.0.0/16"))
    (outside,) = [rule["to"] for rule in spec["egress"] if "ipBlock" in rule.get("to", [{}])[0]]
    assert outside == [
        {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8", "169.254.0.0/16"]}},
        {"ipBlock": {"cidr": "::/0", "except": ["fd00::/8"]}},
    ]


def test_name_servers_answer_at_any_address() -> None:
    """Also at a link-local one, as that of NodeLocal DNSCache."""
    (rule,) = [rule for rule in policy(dns_ports=(53, 5353))["egress"] if "to" not in rule]
    assert rule["ports"] == [{"port": port, "protocol": protocol} for port in (53, 5353) for protocol in ("UDP", "TCP")]


def test_further_rules_are_added_as_they_stand() -> None:
    rule = {"to": [{"ipBlock": {"cidr": "169.254.169.254/32"}}], "ports": [{"port": 80}]}
    gateway = {"from": [{"namespaceSelector": {}}]}
    spec = policy(egress=(rule,), ingress=(gateway,))
    assert rule in spec["egress"]
    assert gateway in spec["ingress"]


def test_a_closed_range_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(InvalidSettings, match=r"closed: .*10\.0\.0\.1/8"):
        load(LauncherSettings, None, {"RESOLUTE_KUBERNETES__TASK_NETWORK__CLOSED": "[10.0.0.1/8]"})


def test_the_environment_gives_peers_as_kubernetes_writes_them() -> None:
    given = {"RESOLUTE_KUBERNETES__TASK_NETWORK__API": '[{"podSelector": {"matchLabels": {"part": "api"}}}]'}
    settings = load(LauncherSettings, None, given)
    assert isinstance(settings.kubernetes, KubernetesSettings)
    assert settings.kubernetes.task_network.api == (API,)
