"""What a placeholder asks the cluster for: what a pod of the task would, on a node that was not there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from libs.events.orders import PlaceholderOrder
from services.launcher.backends.kubernetes.manifests.names import PLACEHOLDER_LABEL, launcher_id
from services.launcher.backends.kubernetes.placeholders.manifest import PlaceholderTraits, names, placeholder_pod

TRAITS = PlaceholderTraits(pool="gpus", cluster_id="0a1b2c3d-1", image="registry.example/pause:1")
ORDER = PlaceholderOrder(
    pool="gpus",
    allocation="1.a.1",
    pods=2,
    requests={"cpu": 1500, "memory": 1 << 30, "nvidia.com/gpu": 8, "nothing": 0},
    node_selector={"gpu": "a100"},
    tolerations=({"key": "nvidia.com/gpu", "operator": "Exists"},),
    gives_up_at=datetime(2030, 1, 1, tzinfo=UTC),
)
ZONES = ({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}, {"matchFields": [{"key": "x"}]})


def pod(order: PlaceholderOrder = ORDER, **said: Any) -> dict[str, Any]:
    now = ORDER.gives_up_at - timedelta(minutes=15)
    return placeholder_pod(order, TRAITS, **{"name": "n", "hosts": ["h1"], "priority_class": "low", "now": now, **said})


def terms(made: dict[str, Any]) -> list[dict[str, Any]]:
    required = made["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    found: list[dict[str, Any]] = required["nodeSelectorTerms"]
    return found


def test_it_asks_for_what_a_pod_of_the_task_does() -> None:
    spec = pod()["spec"]
    [container] = spec["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "1500m", "memory": "1073741824", "nvidia.com/gpu": "8"},
        "limits": {"nvidia.com/gpu": "8"},
    }
    assert spec["nodeSelector"] == {"gpu": "a100"}
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    assert (container["image"], spec["priorityClassName"]) == ("registry.example/pause:1", "low")


def test_huge_pages_have_a_limit_as_kubernetes_refuses_them_without() -> None:
    [container] = pod(msgspec.structs.replace(ORDER, requests={"cpu": 1000, "hugepages-2Mi": 1 << 21}))["spec"][
        "containers"
    ]
    assert container["resources"]["requests"] == {"cpu": "1000m", "hugepages-2Mi": "2097152"}
    assert container["resources"]["limits"] == {"hugepages-2Mi": "2097152"}


def test_it_gives_its_node_back_even_if_nobody_deletes_it() -> None:
    assert pod()["spec"]["activeDeadlineSeconds"] == 900
    late = ORDER.gives_up_at - timedelta(microseconds=1)
    assert pod(now=late)["spec"]["activeDeadlineSeconds"] == 1


def test_without_a_class_it_names_none() -> None:
    assert "priorityClassName" not in pod(priority_class=None)["spec"]


def test_it_stays_off_the_hosts_that_were_there() -> None:
    [term] = terms(pod(hosts=["h2", "h1", "h2"]))
    assert {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["h1", "h2"]} in term["matchExpressions"]


def test_where_none_was_it_names_no_host() -> None:
    [term] = terms(pod(hosts=[]))
    assert [each["operator"] for each in term["matchExpressions"]] == ["DoesNotExist"]


def test_for_karpenter_it_stays_off_nodes_with_a_label() -> None:
    [term] = terms(pod(hosts=None))
    assert {"key": "resolute/known-node", "operator": "DoesNotExist"} in term["matchExpressions"]
    assert not [each for each in term["matchExpressions"] if each["key"] == "kubernetes.io/hostname"]


def test_each_alternative_of_the_affinity_says_so() -> None:
    first, second = terms(pod(msgspec.structs.replace(ORDER, affinity_terms=ZONES)))
    assert first["matchExpressions"][0] == ZONES[0]["matchExpressions"][0]
    assert second["matchFields"] == [{"key": "x"}]
    for term in (first, second):
        assert {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["h1"]} in term["matchExpressions"]


def test_autoscalers_leave_it_alone_and_it_is_no_task() -> None:
    metadata = pod()["metadata"]
    assert metadata["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
    assert metadata["annotations"]["karpenter.sh/do-not-disrupt"] == "true"
    assert metadata["labels"][PLACEHOLDER_LABEL] == launcher_id(TRAITS.cluster_id, TRAITS.pool)
    assert not {"determined", "resolute/launcher"} & metadata["labels"].keys()


def test_names_follow_from_the_order() -> None:
    assert names(ORDER, TRAITS) == names(ORDER, TRAITS)
    assert len(set(names(ORDER, TRAITS))) == 2
    assert not set(names(ORDER, TRAITS)) & set(names(msgspec.structs.replace(ORDER, allocation="1.b.1"), TRAITS))
    assert all(len(name) <= 63 for name in names(msgspec.structs.replace(ORDER, pods=1000), TRAITS))
