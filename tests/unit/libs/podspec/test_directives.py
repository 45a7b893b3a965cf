"""Directives of the patch format, nulls, the order of lists, and patches that make no sense."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pytest

from libs.podspec import InvalidPodPatch, merge_pod, without_senseless_directives

Object = dict[str, Any]


@dataclass
class Case:
    name: str
    base: Object | None
    patch: Object | None
    result: Object


def boxes(*names: str, **fields: Any) -> Object:
    return {"containers": [{"name": name, "image": name, **fields} for name in names]}


def names(*order: str) -> list[Object]:
    return [{"name": name} for name in order]


SPEC_CASES = [
    Case("nothing over nothing", None, None, {}),
    Case(
        "map replaced",
        {"nodeSelector": {"a": "1"}},
        {"nodeSelector": {"$patch": "replace", "b": "2"}},
        {"nodeSelector": {"b": "2"}},
    ),
    Case(
        "map replaced where there is none",
        {},
        {"securityContext": {"$patch": "replace", "runAsUser": 1}},
        {"securityContext": {"runAsUser": 1}},
    ),
    Case(
        "map emptied",
        {"nodeSelector": {"a": "1"}},
        {"nodeSelector": {"$patch": "delete", "b": "2"}},
        {"nodeSelector": {}},
    ),
    Case("map emptied where there is none", {}, {"nodeSelector": {"$patch": "delete"}}, {}),
    Case(
        "merge is what happens anyway",
        {"nodeSelector": {"a": "1"}},
        {"nodeSelector": {"$patch": "merge", "b": "2"}},
        {"nodeSelector": {"a": "1", "b": "2"}},
    ),
    Case(
        "merge of an element",
        boxes("a"),
        {"containers": [{"name": "a", "$patch": "merge", "tty": True}]},
        {"containers": [{"name": "a", "image": "a", "tty": True}]},
    ),
    Case(
        "list replaced",
        boxes("a", "b"),
        {"containers": [{"$patch": "replace"}, {"name": "z"}]},
        {"containers": names("z")},
    ),
    Case(
        "element deleted and put back",
        boxes("a", "b"),
        {"containers": [{"name": "a", "$patch": "delete"}, {"name": "a", "tty": True}]},
        {"containers": [{"name": "a", "tty": True}, {"name": "b", "image": "b"}]},
    ),
    Case(
        "deletions in a list with nothing below",
        {},
        {"containers": [{"name": "a", "$patch": "delete"}, {"name": "b"}]},
        {"containers": names("b")},
    ),
    Case(
        "nulls in a new element",
        boxes("a"),
        {"containers": [{"name": "b", "image": None, "tty": True}]},
        {"containers": [{"name": "b", "tty": True}, {"name": "a", "image": "a"}]},
    ),
    Case(
        "nulls in an atomic list",
        {},
        {"tolerations": [{"key": None, "operator": "Exists"}]},
        {"tolerations": [{"operator": "Exists"}]},
    ),
    Case("nulls in the base", {"tolerations": None, "nodeSelector": {"a": None}}, {}, {"nodeSelector": {}}),
    Case(
        "nested directives of a new element",
        {},
        {
            "containers": [
                {"name": "a", "env": [{"name": "E", "$patch": "delete"}, {"name": "F"}], "$retainKeys": ["name", "env"]}
            ]
        },
        {"containers": [{"name": "a", "env": names("F")}]},
    ),
    Case(
        "only retained keys stay",
        {"volumes": [{"name": "v", "hostPath": {"path": "/d"}}]},
        {"volumes": [{"name": "v", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}]},
        {"volumes": [{"name": "v", "emptyDir": {}}]},
    ),
    Case(
        "retained keys and a null",
        {"hostIPC": True, "hostPID": True},
        {"$retainKeys": ["hostPID"], "hostIPC": None},
        {"hostPID": True},
    ),
    Case(
        "order of elements set",
        boxes("a", "b", "c"),
        {"$setElementOrder/containers": names("c", "a"), "containers": [{"name": "a", "image": "q"}]},
        {"containers": [{"name": "b", "image": "b"}, {"name": "c", "image": "c"}, {"name": "a", "image": "q"}]},
    ),
    Case(
        "order set, nothing else",
        boxes("a", "b", "c"),
        {"$setElementOrder/containers": names("c", "a", "b")},
        boxes("c", "a", "b"),
    ),
    Case(
        "order set beside a deletion",
        boxes("a", "b", "c"),
        {"$setElementOrder/containers": names("c", "a"), "containers": [{"name": "b", "$patch": "delete"}]},
        boxes("c", "a"),
    ),
    Case("order of nothing", {}, {"$setElementOrder/containers": names("c")}, {}),
    Case(
        "order of an atomic list",
        boxes("a", args=["1", "2"]),
        {"containers": [{"name": "a", "$setElementOrder/args": ["2", "1"]}]},
        boxes("a", args=["2", "1"]),
    ),
    Case(
        "values removed from an atomic list",
        boxes("a", args=["1", "2"]),
        {"containers": [{"name": "a", "$deleteFromPrimitiveList/args": ["2"]}]},
        boxes("a", args=["1"]),
    ),
    Case("another kind of value replaces", {"nodeSelector": {"a": "1"}}, {"nodeSelector": []}, {"nodeSelector": []}),
    Case("an empty list changes no keyed list", boxes("a"), {"containers": []}, boxes("a")),
    Case(
        "an empty list empties an atomic one", {"tolerations": [{"key": "a"}]}, {"tolerations": []}, {"tolerations": []}
    ),
    Case(
        "patched items keep their order, others their place",
        boxes("a", "b", "c", "d"),
        boxes("z", "d", "y", "b"),
        boxes("z", "a", "c", "d", "y", "b"),
    ),
    Case(
        "a list with nothing below is taken as it is",
        {},
        {
            "containers": [
                {
                    "name": "a",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "UDP"}],
                }
            ]
        },
        {
            "containers": [
                {
                    "name": "a",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "UDP"}],
                }
            ]
        },
    ),
    Case(
        "elements the patch repeats",
        boxes("a"),
        {"containers": [{"name": "b", "image": "1"}, {"name": "b", "tty": True}]},
        {"containers": [{"name": "b", "image": "1", "tty": True}, {"name": "a", "image": "a"}]},
    ),
    Case(
        "elements the base repeats go together",
        {"containers": names("a", "a", "b")},
        {"containers": [{"name": "a", "$patch": "delete"}]},
        {"containers": names("b")},
    ),
    Case(
        "devices by path",
        boxes("a", volumeDevices=[{"devicePath": "/d", "name": "x"}]),
        {
            "containers": [
                {"name": "a", "volumeDevices": [{"devicePath": "/d", "name": "y"}, {"devicePath": "/e", "name": "z"}]}
            ]
        },
        boxes("a", volumeDevices=[{"devicePath": "/d", "name": "y"}, {"devicePath": "/e", "name": "z"}]),
    ),
    Case(
        "spread constraints by topology key",
        {"topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": 1}]},
        {"topologySpreadConstraints": [{"topologyKey": "h"}, {"topologyKey": "z", "maxSkew": 3}]},
        {"topologySpreadConstraints": [{"topologyKey": "h"}, {"topologyKey": "z", "maxSkew": 3}]},
    ),
    Case(
        "gates and claims by name",
        {"schedulingGates": names("a"), "resourceClaims": names("x")},
        {"schedulingGates": names("b"), "resourceClaims": names("x", "y")},
        {"schedulingGates": names("b", "a"), "resourceClaims": names("x", "y")},
    ),
    Case(
        "claims of a container are atomic",
        boxes("a", resources={"claims": names("x")}),
        {"containers": [{"name": "a", "resources": {"claims": names("y")}}]},
        boxes("a", resources={"claims": names("y")}),
    ),
    Case(
        "ephemeral containers",
        {"ephemeralContainers": [{"name": "a", "env": names("E")}]},
        {"ephemeralContainers": [{"name": "a", "env": names("F")}]},
        {"ephemeralContainers": [{"name": "a", "env": names("F", "E")}]},
    ),
    Case(
        "fields nobody knows",
        {"unknown": {"a": 1}, "list": [1]},
        {"unknown": {"b": 2}, "list": [2]},
        {"unknown": {"a": 1, "b": 2}, "list": [2]},
    ),
]


@pytest.mark.parametrize("case", SPEC_CASES, ids=attrgetter("name"))
def test_patch_of_the_spec(case: Case) -> None:
    pods = [None if part is None else {"spec": part} for part in (case.base, case.patch)]
    assert merge_pod(*pods) == ({"spec": case.result} if case.patch is not None else {})


FINALIZERS = [
    ({"finalizers": ["d", "c"]}, ["d", "a", "b", "c"]),
    ({"$deleteFromPrimitiveList/finalizers": ["a", "z"]}, ["b", "c"]),
    ({"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["q"]}, ["q", "b", "c"]),
    ({"$setElementOrder/finalizers": ["c", "d", "a"], "finalizers": ["d"]}, ["b", "c", "d", "a"]),
    ({"finalizers": ["a", "a"]}, ["a", "b", "c"]),
]


@pytest.mark.parametrize(("patch", "result"), FINALIZERS)
def test_finalizers_are_a_set(patch: Object, result: list[str]) -> None:
    merged = merge_pod({"metadata": {"finalizers": ["a", "b", "c"]}}, {"metadata": patch})
    assert merged == {"metadata": {"finalizers": result}}


def test_metadata_of_volume_claims_is_metadata_too() -> None:
    def pod(finalizer: str) -> Object:
        template = {"metadata": {"finalizers": [finalizer]}}
        return {"spec": {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}]}}

    volume = merge_pod(pod("a"), pod("b"))["spec"]["volumes"][0]
    assert volume["ephemeral"]["volumeClaimTemplate"]["metadata"]["finalizers"] == ["b", "a"]


INVALID = [
    ({"nodeSelector": {"$patch": "x"}}, "spec.nodeSelector: $patch must be merge, replace or delete, not 'x'"),
    ({"containers": [{"image": "b"}]}, "spec.containers[0]: 'name' is missing"),
    ({"containers": [{"name": "a"}, {"$patch": "delete"}]}, "spec.containers[1]: 'name' is missing"),
    ({"containers": ["x"]}, "spec.containers[0]: must be an object"),
    (
        {"volumes": [{"name": "v", "$retainKeys": ["name"], "emptyDir": {}}]},
        "'emptyDir' is set, but not in $retainKeys",
    ),
    ({"$retainKeys": "x"}, "spec: $retainKeys must be a list"),
    ({"$setElementOrder/containers": "x"}, "spec: $setElementOrder/containers must be a list"),
    (
        {"$setElementOrder/containers": [{"name": "c"}], "containers": [{"name": "z"}]},
        "spec.containers: the order of the list does not match its $setElementOrder",
    ),
    (
        {"$setElementOrder/containers": names("c", "a"), "containers": names("a", "c")},
        "the order of the list does not match its $setElementOrder",
    ),
]


@pytest.mark.parametrize(("patch", "message"), INVALID, ids=[message for _, message in INVALID])
def test_patch_without_sense_is_refused_with_its_place(patch: Object, message: str) -> None:
    base = {"spec": {**boxes("a", "c"), "volumes": names("v")}}
    with pytest.raises(InvalidPodPatch) as caught:
        merge_pod(base, {"spec": patch})
    assert message in str(caught.value)


SENSELESS: list[tuple[Object, Object]] = [
    ({"nodeSelector": {"$patch": "x", "a": "b"}}, {"nodeSelector": {"a": "b"}}),
    ({"$patch": {"a": 1}, "hostname": "h"}, {"hostname": "h"}),
    ({"containers": [{"name": "a"}, {"$patch": "delete"}]}, {"containers": [{"name": "a"}]}),
    (
        {"volumes": [{"name": "v", "$retainKeys": ["name"], "emptyDir": {}}]},
        {"volumes": [{"name": "v", "emptyDir": {}}]},
    ),
    ({"$retainKeys": "x", "hostname": "h"}, {"hostname": "h"}),
    ({"$setElementOrder/containers": "x", "$deleteFromPrimitiveList/containers": 1}, {}),
    (
        {"$setElementOrder/containers": names("c", "a"), "containers": names("a", "c")},
        {"containers": names("a", "c")},
    ),
]


@pytest.mark.parametrize(("patch", "left"), SENSELESS, ids=[str(patch) for patch, _ in SENSELESS])
def test_directives_without_sense_can_be_left_out(patch: Object, left: Object) -> None:
    assert without_senseless_directives({"spec": patch}) == {"spec": left}


@pytest.mark.parametrize("case", SPEC_CASES, ids=attrgetter("name"))
def test_everything_else_stays(case: Case) -> None:
    patch = {"spec": case.patch or {}}
    assert without_senseless_directives(patch) == patch
