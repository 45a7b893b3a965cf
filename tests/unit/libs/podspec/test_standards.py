"""What users' pods may ask of nodes: each way out of a container is a row, and so is what stays allowed."""

from __future__ import annotations

import posixpath
from operator import attrgetter
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.podspec.standards import (
    NodeRules,
    asked_of_nodes,
    capability_refusals,
    host_path_refusal,
    is_below,
)

BASELINE = NodeRules("baseline", host_paths=("/data",))
RESTRICTED = BASELINE._replace(level="restricted")


class Case(NamedTuple):
    name: str
    pod: dict[str, Any]
    path: str


def spec(**fields: Any) -> dict[str, Any]:
    return {"spec": fields}


def main(**fields: Any) -> dict[str, Any]:
    return spec(containers=[{"name": "determined-container", **fields}])


def volume(**source: Any) -> dict[str, Any]:
    return spec(volumes=[{"name": "v", **source}])


def paths(pod: dict[str, Any], rules: NodeRules = BASELINE) -> list[str]:
    return [said.partition(" ")[0] for said in asked_of_nodes(pod, rules)]


STANDARDS = [
    Case("host namespaces", spec(hostPID=True), "spec.hostPID"),
    Case("privileged", main(securityContext={"privileged": True}), "spec.containers[0].securityContext.privileged"),
    Case(
        "capability",
        main(securityContext={"capabilities": {"add": ["CHOWN", "SYS_ADMIN"]}}),
        "spec.containers[0].securityContext.capabilities.add",
    ),
    Case("directory of the node", volume(hostPath={"path": "/"}), "spec.volumes[0].hostPath"),
    Case("beside what is allowed", volume(hostPath={"path": "/database"}), "spec.volumes[0].hostPath"),
    Case("out of what is allowed", volume(hostPath={"path": "/data/../etc"}), "spec.volumes[0].hostPath"),
    Case(
        "port of the node",
        spec(initContainers=[{"ports": [{"hostPort": 80}]}]),
        "spec.initContainers[0].ports[0].hostPort",
    ),
    Case(
        "unconfined",
        spec(securityContext={"seccompProfile": {"type": "Unconfined"}}),
        "spec.securityContext.seccompProfile",
    ),
    Case("kernel", spec(securityContext={"sysctls": [{"name": "kernel.msgmax"}]}), "spec.securityContext.sysctls[0]"),
    Case(
        "mounts of the kernel",
        main(securityContext={"procMount": "Unmasked"}),
        "spec.containers[0].securityContext.procMount",
    ),
    Case("node", spec(nodeName="n"), "spec.nodeName"),
    Case("scheduler", spec(schedulerName="mine"), "spec.schedulerName"),
    Case("priority class", spec(priorityClassName="system-node-critical"), "spec.priorityClassName"),
    Case("runtime", spec(runtimeClassName="kata"), "spec.runtimeClassName"),
    Case("claims", spec(resourceClaims=[{"name": "c"}]), "spec.resourceClaims"),
    Case("grace", spec(terminationGracePeriodSeconds=86400), "spec.terminationGracePeriodSeconds"),
    Case("finalizers", {"metadata": {"finalizers": ["a/b"]}}, "metadata.finalizers"),
    Case("owner", {"metadata": {"ownerReferences": [{"uid": "1"}]}}, "metadata.ownerReferences"),
]


ONLY_RESTRICTED = [
    Case("root", spec(securityContext={"runAsUser": 0}), "spec.securityContext.runAsUser"),
    Case("perhaps root", spec(securityContext={"runAsNonRoot": False}), "spec.securityContext.runAsNonRoot"),
    Case(
        "gains rights",
        main(securityContext={"allowPrivilegeEscalation": True}),
        "spec.containers[0].securityContext.allowPrivilegeEscalation",
    ),
    Case(
        "capability",
        main(securityContext={"capabilities": {"add": ["CHOWN"]}}),
        "spec.containers[0].securityContext.capabilities.add",
    ),
    Case("kind of volume", volume(nfs={"server": "s", "path": "/"}), "spec.volumes[0].nfs"),
]

ALLOWED = [
    spec(tolerations=[{"operator": "Exists"}], nodeSelector={"gpu": "a100"}),
    spec(priorityClassName="determined-medium-priority", schedulerName="coscheduler"),
    spec(terminationGracePeriodSeconds=60, securityContext={"runAsUser": 1000, "runAsNonRoot": True}),
    volume(emptyDir={"medium": "Memory"}),
    volume(hostPath={"path": "/data/sets"}),
    volume(secret={"secretName": "mine"}),
    main(resources={"requests": {"memory": "1Gi"}}, securityContext={"capabilities": {"drop": ["ALL"]}}),
]


@pytest.mark.parametrize("case", STANDARDS, ids=attrgetter("name"))
def test_what_leads_out_of_a_container_is_refused(case: Case) -> None:
    assert paths(case.pod) == [case.path]
    assert case.path in paths(case.pod, RESTRICTED)


@pytest.mark.parametrize("case", ONLY_RESTRICTED, ids=attrgetter("name"))
def test_what_a_task_does_not_need_is_refused_to_restricted_pods(case: Case) -> None:
    assert paths(case.pod) == []
    assert paths(case.pod, RESTRICTED) == [case.path]


@pytest.mark.parametrize("pod", ALLOWED)
def test_the_usual_stays_allowed(pod: dict[str, Any]) -> None:
    assert asked_of_nodes(pod, RESTRICTED) == []


def test_a_refusal_names_the_field_and_the_setting() -> None:
    assert asked_of_nodes(spec(runtimeClassName="kata"), BASELINE) == [
        "spec.runtimeClassName chooses the runtime of the node; security.pod_fields can allow spec.runtimeClassName"
    ]
    [said] = asked_of_nodes(volume(hostPath={"path": "/"}), BASELINE)
    assert said == "spec.volumes[0].hostPath mounts / of the node; security.host_paths can allow it"


def test_fields_are_allowed_without_their_places_in_lists() -> None:
    privileged = "spec.containers.securityContext.privileged"
    rules = BASELINE._replace(fields=("spec.runtimeClassName", privileged))
    assert paths(spec(runtimeClassName="kata"), rules) == []
    assert paths(main(securityContext={"privileged": True}), rules) == []
    assert paths(spec(initContainers=[{"securityContext": {"privileged": True}}]), rules) != []


def test_directories_and_capabilities_beside_the_pod_spec() -> None:
    assert host_path_refusal("/data/x", BASELINE) is None
    assert host_path_refusal("/etc", BASELINE) == "mounts /etc of the node; security.host_paths can allow it"
    [said] = capability_refusals(["CAP_SYS_ADMIN", "CHOWN"], BASELINE)
    assert said.startswith("adds the capability CAP_SYS_ADMIN")
    assert capability_refusals(["SYS_ADMIN"], BASELINE._replace(fields=("environment.add_capabilities",))) == []


FIELDS = [
    *("spec", "metadata", "volumes", "containers", "name", "hostPath", "path", "securityContext", "finalizers"),
    *("schedulerName", "sysctls", "capabilities", "add", "seLinuxOptions", "type", "procMount", "ports", "resources"),
]
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["spec", "metadata"]), ODD))
def test_nothing_that_can_be_written_breaks_the_judgement(pod: dict[str, Any]) -> None:
    assert all(asked_of_nodes(pod, RESTRICTED))


@given(st.lists(st.sampled_from(["a", "b", "..", ".", ""]), max_size=6))
def test_a_path_below_a_directory_never_leaves_it(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    if is_below(path, ("/a/b",)):
        assert posixpath.normpath(path).lstrip("/").startswith("a/b")
