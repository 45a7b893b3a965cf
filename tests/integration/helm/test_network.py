"""NetworkPolicies let through what the picture of the parts shows (docs/architecture.md 2), and nothing else."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.harness.helm import Release
from tests.integration.helm.conftest import Rendered

PARTS: Final = ("master", "scheduler", "logs", "launcher", "db", "nats", "migration")
TALKS: Final = {
    ("master", "db", 5432),
    ("master", "nats", 4222),
    ("scheduler", "db", 5432),
    ("scheduler", "nats", 4222),
    ("logs", "db", 5432),
    ("logs", "nats", 4222),
    ("launcher", "nats", 4222),
    ("migration", "db", 5432),
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


def test_pods_reach_what_they_need_and_no_other_part(rendered: Rendered) -> None:
    release = rendered("defaults")
    labels = labels_of(release)
    policies = {part: release.get("NetworkPolicy", f"resolute-{part}")["spec"] for part in PARTS}
    for part in PARTS:
        assert policies[part]["podSelector"]["matchLabels"].items() <= labels[part].items()
        assert policies[part]["policyTypes"] == ["Ingress", "Egress"]
    talks = {
        (source, target, port)
        for source in PARTS
        for target in PARTS
        for port in (5432, 4222, 6222)
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
