"""Fields of a Pod: which keys are none, and that the table has all that Kubernetes has."""

from __future__ import annotations

import re
from typing import Any

import kubernetes.client.models as kubernetes_models
import pytest

from libs.podspec import UnknownField, unknown_fields
from libs.podspec.fields import FIELDS, POD

WRITTEN_BY_THE_CLUSTER = ("V1PodStatus", "V1ManagedFieldsEntry")
"""Not looked into."""


def fields_of(model: str) -> dict[str, str]:
    """Name of a field -> its type, as the client of Kubernetes has them."""
    known = getattr(kubernetes_models, model)
    return {known.attribute_map[attribute]: name for attribute, name in known.openapi_types.items()}


def looked_into(type_name: str) -> str:
    """The model behind the type of a field, or of the items of a list; "" where there is none to look into."""
    model = re.sub(r"^List\[(\w+)\]$", r"\1", type_name)
    return model if hasattr(kubernetes_models, model) and model not in WRITTEN_BY_THE_CLUSTER else ""


def test_no_field_of_kubernetes_is_unknown() -> None:
    compared: set[str] = set()
    waiting = [("V1Pod", POD)]
    while waiting:
        model, ours = waiting.pop()
        if ours in compared:
            continue
        compared.add(ours)
        theirs = fields_of(model)
        assert FIELDS[ours].keys() >= theirs.keys(), ours
        for name, type_name in theirs.items():
            inner = looked_into(type_name)
            field = FIELDS[ours][name]
            assert (field.type != "", field.is_list) == (inner != "", type_name.startswith("List[")), (ours, name)
            if inner:
                waiting.append((inner, field.type))
    assert compared == FIELDS.keys()


POD_OF_A_USER: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"labels": {"any key": "x"}, "annotations": {"a/b": "c"}},
    "spec": {
        "nodeSelector": {"any key": "x"},
        "containers": [
            {
                "name": "determined-container",
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "resources": {"limits": {"example.com/device": 1}},
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            }
        ],
        "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "s"}}}}],
        "affinity": None,
        "tolerations": [None],
    },
}
UNKNOWN = [
    ({"spek": {}}, "", "spek"),
    ({"metadata": {"label": {}}}, ".metadata", "label"),
    ({"spec": {"containers": [{}, {"volume_mounts": []}]}}, ".spec.containers[1]", "volume_mounts"),
    ({"spec": {"affinity": {"nodeAffinity": {"x": 1}}}}, ".spec.affinity.nodeAffinity", "x"),
    ({"spec": {"$retainKeys": []}}, ".spec", "$retainKeys"),
]


def test_keys_that_users_choose_are_no_fields() -> None:
    assert unknown_fields(POD_OF_A_USER) == []


@pytest.mark.parametrize(("pod", "path", "name"), UNKNOWN, ids=[name for _, _, name in UNKNOWN])
def test_a_key_that_is_no_field_is_found_where_it_is(pod: dict[str, Any], path: str, name: str) -> None:
    assert unknown_fields(pod) == [UnknownField(path, name)]


@pytest.mark.parametrize("pod", [{"spec": []}, {"spec": {"containers": {"x": 1}}}, {"spec": {"affinity": [{"x": 1}]}}])
def test_what_has_another_shape_is_for_others_to_refuse(pod: dict[str, Any]) -> None:
    assert unknown_fields(pod) == []
