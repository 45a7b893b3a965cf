"""What users may not set in a pod spec, with the texts that clients know."""

from __future__ import annotations

from typing import Any

import pytest

from libs.podspec import MAIN_CONTAINER, refusals

POD: list[tuple[dict[str, Any], str, str]] = [
    ({"metadata": {"name": "x"}}, ".metadata", "pod Name is not a configurable option: x does not equal "),
    ({"metadata": {"namespace": "x"}}, ".metadata", "pod Namespace is not a configurable option: x does not equal "),
    ({"metadata": {"name_space": "x"}}, ".metadata", "pod NameSpace is not a configurable option: x does not equal "),
    ({"name": "x"}, "", "pod Name is not a configurable option: x does not equal "),
    ({"name_space": "x"}, "", "pod NameSpace is not a configurable option: x does not equal "),
    (
        {"spec": {"hostNetwork": True}},
        ".spec",
        "host networking must be configured via master.yaml: expected false, got true",
    ),
]
EXPERIMENT = ", set it in the experiment config"
MAIN: list[tuple[str, Any, str]] = [
    ("image", "i", f"container Image is not configurable{EXPERIMENT}: i does not equal "),
    ("command", ["a", "b"], "container Command is not configurable: 2 does not equal 0"),
    ("args", ["a"], "container Args are not configurable: 1 does not equal 0"),
    ("workingDir", "/w", "container WorkingDir is not configurable: /w does not equal "),
    ("working_dir", "/w", "container WorkingDir is not configurable: /w does not equal "),
    ("ports", [{}], "container Ports are not configurable: 1 does not equal 0"),
    *(
        (field, {}, f"container {name} is not configurable: expected true, got false")
        for name, *fields in [
            ("LivenessProbe", "livenessProbe", "liveness_probe"),
            ("ReadinessProbe", "readinessProbe", "readiness_probe"),
            ("StartupProbe", "startupProbe", "startup_probe"),
            ("Lifecycle", "lifecycle"),
        ]
        for field in fields
    ),
    *(
        (field, "x", f"container {name}: x doesn't match regex ")
        for name, *fields in [
            ("TerminationMessagePath is not configurable", "terminationMessagePath", "termination_message_path"),
            ("TerminationMessagePolicy is not configurable", "terminationMessagePolicy", "termination_message_policy"),
            (f"ImagePullPolicy is not configurable{EXPERIMENT}", "imagePullPolicy", "image_pull_policy"),
        ]
        for field in fields
    ),
    (
        "security_context",
        {},
        f"container SecurityContext is not configurable{EXPERIMENT}: expected true, got false",
    ),
]


@pytest.mark.parametrize(("pod", "path", "text"), POD, ids=[text for _, _, text in POD])
def test_setting_of_the_pod_is_refused(pod: dict[str, Any], path: str, text: str) -> None:
    assert [(refusal.path, f"{refusal.message}: {refusal.detail}") for refusal in refusals(pod)] == [(path, text)]


@pytest.mark.parametrize("name", [MAIN_CONTAINER, None])
@pytest.mark.parametrize(("field", "value", "text"), MAIN, ids=[field for field, _, _ in MAIN])
def test_setting_of_the_main_container_is_refused(field: str, value: Any, text: str, name: str | None) -> None:
    container = {field: value} if name is None else {"name": name, field: value}
    pod = {"spec": {"containers": [{"name": "side"}, container]}}
    assert [(refusal.path, f"{refusal.message}: {refusal.detail}") for refusal in refusals(pod)] == [
        (".spec.containers[1]", text)
    ]


@pytest.mark.parametrize(("field", "value", "_"), MAIN, ids=[field for field, _, _ in MAIN])
def test_sidecars_are_free(field: str, value: Any, _: str) -> None:
    assert refusals({"spec": {"containers": [{"name": "side", field: value}]}}) == []


ALLOWED: list[dict[str, Any]] = [
    {},
    {"metadata": {"labels": {"a": "b"}, "name": None, "namespace": ""}},
    {"spec": {"hostNetwork": False, "restartPolicy": "Always", "hostIPC": True}},
    {"spec": {"containers": [{"name": MAIN_CONTAINER, "securityContext": {"privileged": True}}]}},
    {"spec": {"containers": [{"name": MAIN_CONTAINER, "image": None, "command": [], "lifecycle": None}]}},
    {"spec": {"initContainers": [{"name": MAIN_CONTAINER, "image": "i"}]}},
    {"spec": None, "metadata": None},
    {"spec": {"containers": None}},
]


@pytest.mark.parametrize("pod", ALLOWED, ids=str)
def test_the_rest_is_allowed(pod: dict[str, Any]) -> None:
    assert refusals(pod) == []
