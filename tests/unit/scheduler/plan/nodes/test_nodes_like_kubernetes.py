"""Which nodes a pod may run on is what a plain reading of Kubernetes' rules says, for pods and nodes of any kind."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from libs.podspec.quantities import units
from services.scheduler.orders.pod_requirements import pod_requirements
from services.scheduler.plan.nodes.amounts import amounts
from services.scheduler.plan.nodes.explaining import excluding
from services.scheduler.plan.nodes.requirements import SlotResource
from services.scheduler.plan.nodes.shapes import NodeShape, ShapedNode
from services.scheduler.plan.nodes.taints import NodeTaint
from services.scheduler.plan.nodes.unmet import conditions_unmet, unmet
from tests.unit.scheduler.plan.nodes import reference

Json = dict[str, Any]
GPU = SlotResource("nvidia.com/gpu")

KEYS = st.sampled_from(["a", "b", "nvidia.com/gpu", "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready"])
VALUES = st.sampled_from(["", "x", "y", "1", "2", "-3"])
EFFECTS = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
NAMES = st.sampled_from(["n0", "n1"])
RESOURCES = st.sampled_from(["cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "vendor.example/nic"])
WHOLE = st.sampled_from(["0", "1", "2", "3", "1k", "1Ki"])


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({}, optional=fields)


TOLERATIONS = optional(
    key=st.one_of(st.just(""), KEYS), operator=st.sampled_from(["Equal", "Exists"]), value=VALUES, effect=EFFECTS
)
ON_LABELS = st.one_of(
    st.fixed_dictionaries({"key": KEYS, "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
    st.fixed_dictionaries(
        {"key": KEYS, "operator": st.sampled_from(["In", "NotIn"]), "values": st.lists(VALUES, min_size=1, max_size=2)}
    ),
    st.fixed_dictionaries(
        {"key": KEYS, "operator": st.sampled_from(["Gt", "Lt"]), "values": st.sampled_from([["0"], ["1"], ["-5"]])}
    ),
)
ON_NAMES = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(["In", "NotIn"]),
        "values": st.lists(NAMES, min_size=1, max_size=1),
    }
)
TERMS = optional(matchExpressions=st.lists(ON_LABELS, max_size=2), matchFields=st.lists(ON_NAMES, max_size=1))
AFFINITY = st.lists(TERMS, max_size=2).map(
    lambda terms: {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
)
AMOUNTS = st.one_of(st.dictionaries(RESOURCES, WHOLE, max_size=3), optional(cpu=st.sampled_from(["1500m", "1m", "2"])))
CONTAINER = optional(resources=optional(requests=AMOUNTS, limits=AMOUNTS), restartPolicy=st.just("Always"))
PODS = st.fixed_dictionaries(
    {"containers": st.lists(CONTAINER, min_size=1, max_size=2)},
    optional={
        "initContainers": st.lists(CONTAINER, max_size=3),
        "overhead": AMOUNTS,
        "nodeSelector": st.dictionaries(KEYS, VALUES, max_size=1),
        "affinity": AFFINITY,
        "tolerations": st.lists(TOLERATIONS, max_size=3),
    },
).map(lambda spec: {"spec": spec})
NODES = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"name": NAMES, "labels": st.dictionaries(KEYS, VALUES, max_size=3)}),
        "spec": st.fixed_dictionaries(
            {
                "unschedulable": st.booleans(),
                "taints": st.lists(
                    st.fixed_dictionaries({"key": KEYS, "value": VALUES, "effect": EFFECTS}), max_size=2
                ),
            }
        ),
        "status": st.fixed_dictionaries(
            {
                "ready": st.sampled_from([True, True, True, False]),
                "allocatable": st.fixed_dictionaries(
                    {"pods": st.sampled_from(["110", "110", "0"])},
                    optional=dict.fromkeys(
                        ["cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "vendor.example/nic"],
                        st.sampled_from(["1", "4", "8k"]),
                    ),
                ),
            }
        ),
    }
)


def shape_of(node: Json) -> NodeShape:
    taints = tuple(NodeTaint(each["key"], each["value"], each["effect"]) for each in node["spec"]["taints"])
    return NodeShape(
        labels=tuple(sorted(node["metadata"]["labels"].items())),
        taints=taints,
        unschedulable=node["spec"]["unschedulable"],
        ready=node["status"]["ready"],
        allocatable=amounts({name: units(name, value) for name, value in node["status"]["allocatable"].items()}),
    )


@given(pod=PODS, node=NODES)
def test_a_pod_runs_where_kubernetes_would_bind_it(pod: Json, node: Json) -> None:
    requirements = pod_requirements(pod, slots=0, slot=None)
    found = unmet(requirements, shape_of(node), name=node["metadata"]["name"])
    assert (found is None) == reference.runs(pod, node), found


def large_node(**fields: Any) -> Json:
    """A node on which any pod runs that asks nothing but resources."""
    resources = dict.fromkeys(["cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "vendor.example/nic"], "8k")
    return {
        "metadata": {"name": "n0", "labels": fields.get("labels", {})},
        "spec": {"unschedulable": fields.get("unschedulable", False), "taints": fields.get("taints", [])},
        "status": {"ready": True, "allocatable": {"pods": "110", **resources, **fields.get("allocatable", {})}},
    }


def agrees(spec: Json, node: Json) -> bool:
    pod = {"spec": {"containers": [{}], **spec}}
    found = unmet(pod_requirements(pod, slots=0, slot=None), shape_of(node), name=node["metadata"]["name"])
    return (found is None) == reference.runs(pod, node)


@settings(max_examples=300)
@given(requirement=ON_LABELS, value=VALUES)
def test_each_operator_selects_as_in_kubernetes(requirement: Json, value: str) -> None:
    key = requirement["key"]
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    spec = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    for labels in ({}, {key: value}, {"other": value}):
        assert agrees(spec, large_node(labels=labels)), labels


@settings(max_examples=300)
@given(affinity=AFFINITY, labels=st.dictionaries(KEYS, VALUES))
def test_terms_are_alternatives_of_requirements_that_all_hold(affinity: Json, labels: Json) -> None:
    assert agrees({"affinity": affinity}, large_node(labels=labels))


@settings(max_examples=300)
@given(toleration=TOLERATIONS, key=KEYS, value=VALUES, effect=EFFECTS, same=st.booleans())
def test_each_toleration_tolerates_as_in_kubernetes(
    toleration: Json, key: str, value: str, effect: str, same: bool
) -> None:
    taint = {"key": key, "value": value, "effect": effect}
    if same:
        taint |= {name: toleration[name] for name in ("key", "value", "effect") if toleration.get(name)}
    assert agrees({"tolerations": [toleration]}, large_node(taints=[taint]))
    assert agrees({"tolerations": [toleration]}, large_node(unschedulable=True))


@settings(max_examples=300)
@given(
    containers=st.lists(CONTAINER, min_size=1, max_size=2),
    starting=st.lists(CONTAINER, max_size=3),
    overhead=AMOUNTS,
    resource=RESOURCES,
)
def test_a_pod_requests_what_kubernetes_counts(
    containers: list[Json], starting: list[Json], overhead: Json, resource: str
) -> None:
    spec = {"containers": containers, "initContainers": starting, "overhead": overhead}
    needed = math.ceil(reference.requests({"spec": spec}).get(resource, 0))
    for offered in range(max(0, needed - 1), needed + 1):
        assert agrees(spec, large_node(allocatable={resource: str(offered)})), offered


@given(pod=PODS, nodes=st.lists(NODES, min_size=1, max_size=4))
def test_what_excludes_all_nodes_is_there_when_none_will_do(pod: Json, nodes: list[Json]) -> None:
    requirements = pod_requirements(pod, slots=0, slot=None)
    shaped = [ShapedNode(name=node["metadata"]["name"], shape=shape_of(node)) for node in nodes]
    found = excluding(requirements, shaped)
    assert bool(found) == (not any(reference.runs(pod, node) for node in nodes))
    assert found == excluding(requirements, reversed(shaped))
    missing = [list(conditions_unmet(requirements, each.shape, name=each.name)) for each in shaped]
    for each in found:
        alone = [one for one in missing if len(one) == 1 and (one[0].code, one[0].subject) == (each.code, each.subject)]
        assert (each.nodes, each.considered) == (len(alone), len(nodes))


@given(pod=PODS, node=NODES)
def test_labels_of_the_node_itself_count_like_those_of_its_shape(pod: Json, node: Json) -> None:
    requirements = pod_requirements(pod, slots=0, slot=None)
    whole, name = shape_of(node), node["metadata"]["name"]
    bare = shape_of({**node, "metadata": {"labels": {}}})
    assert unmet(requirements, whole, name=name) == unmet(requirements, bare, name=name, labels=whole.labels)


@given(pod=PODS, first=NODES, second=NODES)
def test_nodes_that_differ_in_what_is_not_asked_for_are_the_same(pod: Json, first: Json, second: Json) -> None:
    requirements = pod_requirements(pod, slots=0, slot=None)
    looked_at = requirements.selected_by
    kept = [(key, value) for key, value in first["metadata"]["labels"].items() if key in looked_at]
    other = [(key, value) for key, value in second["metadata"]["labels"].items() if key not in looked_at]
    shape = shape_of({**first, "metadata": {"labels": dict([*kept, *other])}})
    name = first["metadata"]["name"] if requirements.names_nodes else second["metadata"]["name"]
    assert unmet(requirements, shape, name=name) == unmet(requirements, shape_of(first), name=first["metadata"]["name"])
