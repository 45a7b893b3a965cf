"""When there is an object, and when not: docs/reference/kubernetes.md 16.1, and what is ours beside it."""

from __future__ import annotations

from typing import Final, NamedTuple

import pytest

from tests.harness.helm import at
from tests.integration.helm.conftest import Rendered


class Condition(NamedTuple):
    objects: tuple[str, ...]
    """Kind and name."""
    there: tuple[str, ...]
    """Values files with them."""
    missing: tuple[str, ...]
    """Values files without them."""


CONDITIONS: Final = [
    Condition(
        (
            "Secret/determined-master-config",
            "Deployment/determined-master-deployment",
            "Service/determined-master-service",
            "ServiceAccount/determined-master",
        ),
        ("defaults", "openshift", "external_database"),
        ("launcher_only",),
    ),
    Condition(
        ("ClusterRole/determined-master", "ClusterRoleBinding/determined-master"),
        ("defaults", "launcher_only", "workspaces"),
        ("no_cluster_objects",),
    ),
    Condition(("Route/determined-master-route",), ("openshift",), ("defaults",)),
    Condition(("Route/determined-master-tasks-route",), ("openshift",), ("defaults",)),
    Condition(
        ("StatefulSet/determined-db-deployment", "Service/determined-db-service"),
        ("defaults", "database_without_volume"),
        ("external_database", "launcher_only"),
    ),
    Condition(
        ("PersistentVolumeClaim/determined-db-pvc",),
        ("defaults",),
        ("external_database", "database_without_volume", "database_claim", "database", "launcher_only"),
    ),
    Condition(
        ("VolumeSnapshot/determined-db-snapshot-before", "VolumeSnapshotClass/determined-db-snapshot-class"),
        ("database_snapshot",),
        ("defaults", "database_restore"),
    ),
    Condition(
        ("PriorityClass/determined-system-priority", "PriorityClass/determined-medium-priority"),
        ("defaults",),
        ("no_cluster_objects",),
    ),
    Condition(("PriorityClass/determined-placeholder-priority",), ("growing",), ("defaults", "no_cluster_objects")),
    Condition(
        (
            "ConfigMap/scheduler-config",
            "Deployment/coscheduler",
            "ServiceAccount/coscheduler",
            "ClusterRole/coscheduler-pod-permissions",
            "RoleBinding/coscheduler-pod-role",
            "RoleBinding/coscheduler-extention-apiserver",
            "ClusterRoleBinding/coscheduler-as-kube-scheduler",
            "ClusterRoleBinding/coscheduler-as-volume-scheduler",
        ),
        ("coscheduler",),
        ("defaults", "enterprise"),
    ),
    Condition(
        ("StatefulSet/resolute-nats", "Secret/resolute-nats-config"), ("defaults", "three_nats"), ("external_nats",)
    ),
    Condition(
        ("Pod/resolute-smoke-test", "NetworkPolicy/resolute-smoke-test"),
        ("defaults", "own_selectors"),
        ("launcher_only",),
    ),
    Condition(("Job/resolute-migration",), ("defaults", "external_database"), ("launcher_only",)),
    Condition(("Ingress/determined-master",), ("tls_ingress", "ingress_passthrough"), ("defaults",)),
    Condition(("Gateway/determined-master",), ("tls_gateway",), ("defaults", "gateway_existing")),
    Condition(("HTTPRoute/determined-master",), ("tls_gateway", "gateway_existing"), ("defaults",)),
    Condition(
        ("HorizontalPodAutoscaler/determined-master", "HorizontalPodAutoscaler/resolute-logs"),
        ("autoscaling",),
        ("defaults",),
    ),
    Condition(("ScaledObject/resolute-logs",), ("external_nats",), ("defaults", "autoscaling")),
    Condition(("PodMonitor/resolute",), ("monitoring",), ("defaults",)),
    Condition(
        ("PrometheusRule/resolute", "ConfigMap/resolute-dashboard-pools", "ConfigMap/resolute-dashboard-control-plane"),
        ("monitoring",),
        ("defaults", "launcher_only"),
    ),
    Condition(("Namespace/research", "Namespace/batch"), ("two_pools",), ("defaults", "launcher_only")),
    Condition(("NetworkPolicy/resolute-db",), ("defaults",), ("open_network", "external_database")),
    Condition(("NetworkPolicy/resolute-nats",), ("defaults",), ("open_network", "external_nats")),
    Condition(("NetworkPolicy/resolute-launcher",), ("defaults", "launcher_only"), ("open_network",)),
    Condition(("PodDisruptionBudget/determined-master",), ("defaults",), ("no_disruption_budgets",)),
]
SERVICE_TYPES: Final = {
    "defaults": "LoadBalancer",
    "node_port": "NodePort",
    "openshift": "ClusterIP",
    "cluster_ip": "ClusterIP",
    "fixed_node_port": "NodePort",
}


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda condition: condition.objects[0])
def test_objects_are_there_under_their_condition_and_not_otherwise(condition: Condition, rendered: Rendered) -> None:
    for each in condition.objects:
        kind, name = each.split("/")
        assert [values for values in condition.there if rendered(values).find(kind, name) is None] == []
        assert [values for values in condition.missing if rendered(values).find(kind, name) is not None] == []


@pytest.mark.parametrize("values", SERVICE_TYPES)
def test_the_apis_service_is_of_the_type_that_was_asked_for(values: str, rendered: Rendered) -> None:
    assert at(rendered(values).get("Service", "determined-master-service"), "spec/type") == SERVICE_TYPES[values]


def test_names_and_labels_that_commands_rely_on(any_values: str, rendered: Rendered) -> None:
    """docs/reference/kubernetes.md 18."""
    release = rendered(any_values)
    masters = [
        name for kind, name in release.by_name if kind == "Deployment" and "determined-master-deployment" in name
    ]
    if any_values == "launcher_only":
        assert masters == []
        return
    assert masters == ["determined-master-deployment-rel"]
    deployment = release.get("Deployment", "determined-master-deployment")
    assert at(deployment, "spec/selector/matchLabels") == {"app": "determined-master-rel"}
    labels = at(deployment, "spec/template/metadata/labels")
    assert (labels["app"], labels["determined-system"], labels["release-namespace"]) == (
        "determined-master-rel",
        "master",
        "ml",
    )
    assert at(deployment, "spec/template/spec/containers/0/name") == "determined-master-rel"
    service = release.get("Service", "determined-master-service")
    assert at(service, "spec/selector").items() <= labels.items()
    assert at(service, "metadata/labels")["determined.ai/master-service"] == "true"
    assert at(service, "metadata/labels")["release"] == "rel"


def test_no_object_is_taken_for_one_of_a_task(any_values: str, rendered: Rendered) -> None:
    """``kubectl delete pods -l determined`` is for tasks."""
    release = rendered(any_values)
    labelled = [found["metadata"].get("labels", {}) for found in release.manifests]
    labelled += [pod["metadata"].get("labels", {}) for _, pod in release.pods()]
    assert [labels for labels in labelled if "determined" in labels] == []


def test_two_objects_never_share_a_name(any_values: str, rendered: Rendered) -> None:
    names = [
        (found["apiVersion"], found["kind"], found["metadata"].get("namespace"), found["metadata"]["name"])
        for found in rendered(any_values).manifests
    ]
    assert len(names) == len(set(names))
