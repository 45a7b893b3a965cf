"""What users' pods may do with an administrator's containers and volumes: each way to more is a row."""

from __future__ import annotations

import random
from operator import attrgetter
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.podspec import MAIN_CONTAINER, NodeRules, changes_of_defaults, merge_pod
from tests.unit.libs.podspec.pods import random_pod

Object = dict[str, Any]

READ_ONLY: Object = {"name": "sets", "mountPath": "/sets", "readOnly": True}
TEAM: Object = {"name": "home", "mountPath": "/home", "subPath": "team/a"}
BY_USER: Object = {"name": "users", "mountPath": "/mine", "subPathExpr": "$(DET_USER)"}
DEFAULTS: Object = {
    "spec": {
        "containers": [
            {"name": MAIN_CONTAINER, "volumeMounts": [READ_ONLY, TEAM, BY_USER], "env": [{"name": "A", "value": "1"}]},
            {"name": "audit", "image": "audit:1", "command": ["watch"], "volumeMounts": [READ_ONLY]},
        ],
        "initContainers": [{"name": "prepare", "image": "prepare:1"}],
        "volumes": [
            {"name": "sets", "persistentVolumeClaim": {"claimName": "sets"}},
            {"name": "home", "persistentVolumeClaim": {"claimName": "home"}},
            {"name": "users", "persistentVolumeClaim": {"claimName": "users"}},
            {"name": "spare", "emptyDir": {}},
        ],
    }
}
BASELINE = NodeRules("baseline")
MOUNTS = "spec.containers.volumeMounts"


class Case(NamedTuple):
    name: str
    pod: Object
    path: str = ""
    field: str = ""


def spec(**fields: Any) -> Object:
    return {"spec": fields}


def container(name: str, /, **fields: Any) -> Object:
    return spec(containers=[{"name": name, **fields}])


def mounting(container_name: str, /, **mount: Any) -> Object:
    return container(container_name, volumeMounts=[{"mountPath": "/m", **mount}])


def at(name: str, path: str = "/m") -> str:
    return f"spec.containers[{name}].volumeMounts[{path}]"


def said(pod: Object, rules: NodeRules = BASELINE) -> list[str]:
    return changes_of_defaults(merge_pod(None, DEFAULTS), merge_pod(DEFAULTS, pod), rules)


REFUSED = [
    Case("image of a sidecar", container("audit", image="mine"), "spec.containers[audit]", "spec.containers"),
    Case("command of a sidecar", container("audit", command=["true"]), "spec.containers[audit]", "spec.containers"),
    Case(
        "more in a sidecar",
        container("audit", volumeMounts=[{"name": "v", "mountPath": "/v"}]),
        "spec.containers[audit]",
        "spec.containers",
    ),
    Case(
        "a sidecar that is replaced",
        spec(containers=[{"$patch": "replace"}, {"name": "audit", "image": "mine"}]),
        "spec.containers[audit]",
        "spec.containers",
    ),
    Case(
        "an init container",
        spec(initContainers=[{"name": "prepare", "image": "mine"}]),
        "spec.initContainers[prepare]",
        "spec.initContainers",
    ),
    Case(
        "another claim",
        spec(volumes=[{"name": "sets", "persistentVolumeClaim": {"claimName": "others"}}]),
        "spec.volumes[sets]",
        "spec.volumes",
    ),
    Case(
        "another kind of volume",
        spec(volumes=[{"name": "sets", "persistentVolumeClaim": None, "emptyDir": {}}]),
        "spec.volumes[sets]",
        "spec.volumes",
    ),
    Case("writable", mounting("mine", name="sets"), at("mine"), MOUNTS),
    Case("writable in the main one", mounting(MAIN_CONTAINER, name="sets"), at(MAIN_CONTAINER), MOUNTS),
    Case(
        "writable at the same place",
        container(MAIN_CONTAINER, volumeMounts=[{**READ_ONLY, "readOnly": False}]),
        at(MAIN_CONTAINER, "/sets"),
        MOUNTS,
    ),
    Case("the whole volume", mounting("mine", name="home"), at("mine"), MOUNTS),
    Case("another part", mounting("mine", name="home", subPath="team/b"), at("mine"), MOUNTS),
    Case("a name that begins alike", mounting("mine", name="home", subPath="team/ab"), at("mine"), MOUNTS),
    Case("up again", mounting("mine", name="home", subPath="team/a/../b"), at("mine"), MOUNTS),
    Case("an expression", mounting("mine", name="home", subPathExpr="$(OTHER)"), at("mine"), MOUNTS),
    Case("another expression", mounting("mine", name="users", subPathExpr="$(OTHER)"), at("mine"), MOUNTS),
    Case("no expression", mounting("mine", name="users", subPath="bob"), at("mine"), MOUNTS),
    Case(
        "in an init container",
        spec(initContainers=[{"name": "mine", "volumeMounts": [{"name": "sets", "mountPath": "/m"}]}]),
        "spec.initContainers[mine].volumeMounts[/m]",
        "spec.initContainers.volumeMounts",
    ),
]
ACCEPTED = [
    Case("nothing", {}),
    Case("read-only elsewhere", mounting("mine", name="sets", readOnly=True)),
    Case("a part, read-only", mounting("mine", name="sets", readOnly=True, subPath="images")),
    Case("the same part", mounting("mine", name="home", subPath="team/a/")),
    Case("less of it", mounting("mine", name="home", subPath="team/a/b", readOnly=True)),
    Case("the same expression", mounting("mine", name="users", subPathExpr="$(DET_USER)")),
    Case("a volume that nobody mounts", mounting("mine", name="spare")),
    Case("a volume of its own", mounting("mine", name="own")),
    Case("the task's own container", container(MAIN_CONTAINER, env=[{"name": "B", "value": "2"}])),
    Case("another sidecar", container("mine", image="mine")),
    Case("a sidecar less", spec(containers=[{"name": "audit", "$patch": "delete"}])),
    Case("a volume less", spec(volumes=[{"name": "spare", "$patch": "delete"}])),
]


@pytest.mark.parametrize("case", REFUSED, ids=attrgetter("name"))
def test_what_is_the_administrators_stays_as_it_is(case: Case) -> None:
    (sentence,) = said(case.pod)
    assert sentence.startswith(f"{case.path} ")
    assert sentence.endswith(f"security.pod_fields can allow {case.field}")
    assert said(case.pod, NodeRules("baseline", fields=(case.field,))) == []


@pytest.mark.parametrize("case", ACCEPTED, ids=attrgetter("name"))
def test_what_is_narrower_or_their_own_is_the_users(case: Case) -> None:
    assert said(case.pod) == []


def test_a_configuration_that_has_the_defaults_in_it_changes_nothing() -> None:
    assert said(DEFAULTS) == []


def test_a_name_that_is_none_is_nobodys() -> None:
    assert said(mounting("mine", name=["sets"])) == []


@given(st.randoms(use_true_random=True))
def test_any_defaults_are_changed_by_nothing_and_by_themselves(rng: random.Random) -> None:
    pod = random_pod(rng)
    assert changes_of_defaults(pod, merge_pod(pod, {}), BASELINE) == []
    assert changes_of_defaults(pod, merge_pod(pod, pod), BASELINE) == []
