"""Which networks of a cluster are proposed to be closed, and what it means that services are where tasks run."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from deploy.operations.doctor.tasks.namespaces import (
    about_names,
    about_services,
    check_tasks_namespaces,
    proposed_ranges,
)
from libs.cluster.config import ClusterConfig


def node(address: str, *ranges: str) -> dict[str, Any]:
    return {
        "spec": {"podCIDRs": list(ranges)} if ranges else {},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "ExternalIP", "address": "203.0.113.1"},
                {"type": "Hostname", "address": "n"},
            ]
        },
    }


def pod(address: str, **spec: Any) -> dict[str, Any]:
    return {"spec": spec, "status": {"podIPs": [{"ip": address}]}}


def service(address: str) -> dict[str, Any]:
    return {"spec": {"clusterIPs": [address]}}


def kubernetes(address: str) -> dict[str, Any]:
    return {"metadata": {"name": "kubernetes"}, "subsets": [{"addresses": [{"ip": address}]}]}


def test_ranges_that_the_cluster_tells_are_taken_as_they_are() -> None:
    assert proposed_ranges(
        nodes=[node("192.0.2.7", "10.1.0.0/24", "fd00:1::/64"), node("192.0.2.9", "10.1.1.0/24")],
        pods=[pod("10.1.0.9"), pod("192.0.2.7", hostNetwork=True)],
        services=[service("10.96.0.1"), service("None")],
        service_ranges=[{"spec": {"cidrs": ["10.96.0.0/12"]}}],
        endpoints=[kubernetes("198.51.100.7"), {"metadata": {"name": "other"}}],
    ) == {
        "pods": ["10.1.0.0/23", "fd00:1::/64"],
        "services": ["10.96.0.0/12"],
        "nodes": ["192.0.2.0/24"],
        "apiServer": ["198.51.100.7/32"],
    }


def test_where_it_tells_none_addresses_in_use_show_them() -> None:
    assert proposed_ranges(
        nodes=[node("192.0.2.7")],
        pods=[pod("10.100.0.9"), pod("10.100.0.12"), pod("10.100.4.1"), {"spec": {}, "status": {}}],
        services=[service("10.96.3.4")],
        service_ranges=[],
        endpoints=[kubernetes("192.0.2.8")],
    ) == {
        "pods": ["10.100.0.0/24", "10.100.4.0/24"],
        "services": ["10.96.3.0/24"],
        "nodes": ["192.0.2.0/24"],
        "apiServer": [],
    }


def test_services_beside_tasks_are_a_problem_with_the_way_out() -> None:
    found = about_services("det", ["a", "b"], ["determined-master-deployment-det"])
    assert found.level == "problem"
    assert "tasks of a, b run in det beside 1 Deployments" in found.says
    assert "move-tasks" in found.remedy
    assert about_services("det-tasks", ["a"], []).level == "ok"


def test_without_kubectl_the_line_says_how_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    cluster = ClusterConfig()
    assert check_tasks_namespaces(cluster) == []
    (found,) = check_tasks_namespaces(kubernetes_cluster())
    assert found.level == "warning"
    assert "kubectl --namespace research get deployments" in found.remedy


def kubernetes_cluster() -> ClusterConfig:
    return msgspec.convert(
        {
            "resource_manager": {"type": "kubernetes", "max_slots_per_pod": 1, "default_namespace": "research"},
            "resource_pools": [{"pool_name": "default"}],
        },
        ClusterConfig,
    )


def test_a_namespace_of_services_that_policies_cannot_name_is_a_problem() -> None:
    named = {"metadata": {"name": "det", "labels": {"kubernetes.io/metadata.name": "det"}}}
    nameless = [{"metadata": {"name": name}} for name in ("old", "default")]
    assert about_names([named, *nameless], {"det"}) == []
    (finding,) = about_names([named, *nameless], {"det", "old"})
    assert finding.remedy == "kubectl label namespace old kubernetes.io/metadata.name=old"
