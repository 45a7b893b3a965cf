"""What a user's pod may not refer to, and which labels it may not have."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.podspec import NamespaceRules, references_to_made, violations
from libs.podspec.references import references
from libs.podspec.reserved_labels import ALLOWED, is_reserved

BESIDE = NamespaceRules(namespace="det", beside_release=True, references=(), labels=ALLOWED)
APART = BESIDE._replace(beside_release=False)
EVERY = ("containers", "initContainers", "ephemeralContainers")

Pod = dict[str, Any]


@dataclass(frozen=True)
class Case:
    name: str
    spec: Pod
    refers: str
    path: str


def volume(**source: Any) -> Pod:
    return {"volumes": [{"name": "v", **source}]}


def variable(kind: str, **fields: Any) -> Pod:
    return {kind: [{"name": "c", **fields}]}


CASES = [
    Case("secret", volume(secret={"secretName": "x"}), "Secret/x", "spec.volumes[0].secret.secretName"),
    Case("config map", volume(configMap={"name": "x"}), "ConfigMap/x", "spec.volumes[0].configMap.name"),
    Case(
        "claim",
        volume(persistentVolumeClaim={"claimName": "x"}),
        "PersistentVolumeClaim/x",
        "spec.volumes[0].persistentVolumeClaim.claimName",
    ),
    Case(
        "projected secret",
        volume(projected={"sources": [{"secret": {"name": "x"}}]}),
        "Secret/x",
        "spec.volumes[0].projected.sources[0].secret.name",
    ),
    Case(
        "projected token",
        {**volume(projected={"sources": [{"serviceAccountToken": {"path": "t"}}]})},
        "ServiceAccount/default",
        "spec.volumes[0].projected.sources[0].serviceAccountToken",
    ),
    Case(
        "secret of a driver",
        volume(csi={"driver": "d", "nodePublishSecretRef": {"name": "x"}}),
        "Secret/x",
        "spec.volumes[0].csi.nodePublishSecretRef.name",
    ),
    Case(
        "secret in the attributes of a driver",
        volume(csi={"driver": "d", "volumeAttributes": {"secretName": "x"}}),
        "Secret/x",
        "spec.volumes[0].csi.volumeAttributes.secretName",
    ),
    Case(
        "secret of iSCSI",
        volume(iscsi={"secretRef": {"name": "x"}}),
        "Secret/x",
        "spec.volumes[0].iscsi.secretRef.name",
    ),
    Case(
        "copy of a claim",
        volume(
            ephemeral={"volumeClaimTemplate": {"spec": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}}}}
        ),
        "PersistentVolumeClaim/x",
        "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSource.name",
    ),
    Case("service account", {"serviceAccountName": "x"}, "ServiceAccount/x", "spec.serviceAccountName"),
    Case("its old name", {"serviceAccount": "x"}, "ServiceAccount/x", "spec.serviceAccount"),
    Case("pull secret", {"imagePullSecrets": [{"name": "x"}]}, "Secret/x", "spec.imagePullSecrets[0].name"),
    *(
        case
        for kind in EVERY
        for case in (
            Case(
                f"variable from a secret in {kind}",
                variable(kind, env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "x", "key": "k"}}}]),
                "Secret/x",
                f"spec.{kind}[0].env[0].valueFrom.secretKeyRef.name",
            ),
            Case(
                f"variable from a config map in {kind}",
                variable(kind, env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "k"}}}]),
                "ConfigMap/x",
                f"spec.{kind}[0].env[0].valueFrom.configMapKeyRef.name",
            ),
            Case(
                f"all of a secret in {kind}",
                variable(kind, envFrom=[{"secretRef": {"name": "x"}}]),
                "Secret/x",
                f"spec.{kind}[0].envFrom[0].secretRef.name",
            ),
            Case(
                f"all of a config map in {kind}",
                variable(kind, envFrom=[{"configMapRef": {"name": "x"}}]),
                "ConfigMap/x",
                f"spec.{kind}[0].envFrom[0].configMapRef.name",
            ),
        )
    ),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_references_beside_a_release_are_refused(case: Case) -> None:
    pod = {"spec": case.spec}
    (found,) = references(pod)
    assert (str(found), found.path) == (case.refers, case.path)
    (sentence,) = violations(pod, BESIDE)
    assert sentence.startswith(f"{case.path} refers to {case.refers} in the namespace det")
    assert "security.references" in sentence
    assert not violations(pod, APART)
    assert not violations(pod, BESIDE._replace(references=(case.refers,)))
    assert not violations(pod, BESIDE._replace(references=(f"{case.refers.partition('/')[0]}/*",)))
    assert violations(pod, BESIDE._replace(references=("Node/*",)))


def test_a_field_of_an_administrators_reference_is_one_too() -> None:
    pod = {"spec": volume(secret={"items": [{"key": "all", "path": "p"}]})}
    (sentence,) = violations(pod, BESIDE._replace(references=("Secret/*",)))
    assert "a Secret that it does not name" in sentence


@given(st.sampled_from(CASES), st.lists(st.sampled_from(["a", "b", "securityContext", "x"]), max_size=4))
def test_no_depth_hides_a_reference(case: Case, around: list[str]) -> None:
    inner: Any = case.spec
    for field in around:
        inner = {field: [inner]}
    assert violations({"spec": inner}, BESIDE)


MADE = [
    "det-0a1b2c3d-exp-1-trial-2-attempt-1",
    "det-0a1b2c3d-exp-1-trial-2-attempt-1-0123456789abcdef0123",
    "cmd-0123456789abcdef0123-registry",
]


@pytest.mark.parametrize("name", MADE)
def test_what_launchers_make_is_for_nobody_anywhere(name: str) -> None:
    pod = {"spec": volume(secret={"secretName": name})}
    assert references_to_made(pod)
    for rules in (BESIDE, APART):
        assert violations(pod, rules._replace(references=("*",)))


def test_names_of_users_are_their_own() -> None:
    for name in ("det-data", "team-0123456789abcdef", "determined", "det-registry"):
        assert not references_to_made({"spec": volume(secret={"secretName": name})})


RESERVED = [
    "app", "release", "determined-system", "determined", "determined.ai/task_id", "resolute/launcher",
    "resolute.example/part", "app.kubernetes.io/name", "kubernetes.io/x", "pod-security.kubernetes.io/enforce",
    "container.apparmor.security.beta.kubernetes.io/c", "seccomp.security.alpha.kubernetes.io/pod",
    "batch.kubernetes.io/job-name", "job-name", "controller-uid", "scheduling.k8s.io/group-name",
]  # fmt: skip
FREE = ["team", "example.com/app", "kueue.x-k8s.io/queue-name", "prometheus.io/scrape", "notkubernetes.io/x", *ALLOWED]


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_reserved_labels_are_refused(field: str) -> None:
    for key in RESERVED:
        (sentence,) = violations({"metadata": {field: {key: "x"}}}, APART)
        assert sentence.startswith(f"metadata.{field}[{key}]")
        assert "security.pod_labels" in sentence
        assert not violations({"metadata": {field: {key: "x"}}}, APART._replace(labels=(key,)))
    for key in FREE:
        named = key.replace("*", "name")
        assert not violations({"metadata": {field: {named: "x"}}}, APART), named


def test_everything_that_the_chart_selects_by_is_reserved() -> None:
    for key in ("app", "release", "determined-system", "app.kubernetes.io/part-of"):
        assert is_reserved(key)


@given(
    st.recursive(
        st.none() | st.text(max_size=3) | st.integers(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["spec", "metadata", "labels", "secret", "name", "secretRef"]), inner, max_size=3
            )
        ),
        max_leaves=12,
    )
)
def test_nothing_that_is_no_pod_breaks_it(value: Any) -> None:
    violations({"spec": value, "metadata": value}, BESIDE)
