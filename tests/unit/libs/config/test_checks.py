"""Pod specs of notebooks, shells, commands, TensorBoards and generic tasks: the texts of
docs/reference/kubernetes.md 5.1."""

from __future__ import annotations

from typing import Any

import pytest

from libs.config import check_task_pod_spec
from libs.errors import InvalidRequest

ONE = "Check Failed! 1 errors found:\n\terror found at root.Environment: "
NAMED = f"{ONE}pod Name is not a configurable option: x does not equal "
KINDS = [
    ("COMMAND", "invalid command config: "),
    ("NOTEBOOK", "invalid notebook config: "),
    ("TENSORBOARD", "invalid TensorBoard config: "),
    ("GENERIC", "invalid generic task config: "),
    ("SHELL", ""),
]


def refused(pod: dict[str, Any], kind: str = "SHELL") -> str:
    with pytest.raises(InvalidRequest) as caught:
        check_task_pod_spec(kind, pod)
    return str(caught.value)


@pytest.mark.parametrize(("kind", "prefix"), KINDS)
def test_every_kind_of_task_has_its_prefix(kind: str, prefix: str) -> None:
    assert refused({"metadata": {"name": "x"}}, kind) == f"{prefix}{NAMED}"


def main(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "side", **fields}, {"name": "determined-container", **fields}]}}


CONFIG = ", set it in the experiment config"
SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"metadata": {"namespace": "n"}}, "pod Namespace is not a configurable option: n does not equal "),
    (
        {"spec": {"hostNetwork": True}},
        "host networking must be configured via master.yaml: expected false, got true",
    ),
    (main(image="i"), f"container Image is not configurable{CONFIG}: i does not equal "),
    (main(command=["a", "b"]), "container Command is not configurable: 2 does not equal 0"),
    (main(args=["a"]), "container Args are not configurable: 1 does not equal 0"),
    (main(workingDir="/w"), "container WorkingDir is not configurable: /w does not equal "),
    (main(ports=[{"containerPort": 1}]), "container Ports are not configurable: 1 does not equal 0"),
    (main(livenessProbe={}), "container LivenessProbe is not configurable: expected true, got false"),
    (main(readinessProbe={}), "container ReadinessProbe is not configurable: expected true, got false"),
    (main(startupProbe={}), "container StartupProbe is not configurable: expected true, got false"),
    (main(lifecycle={}), "container Lifecycle is not configurable: expected true, got false"),
    (
        main(terminationMessagePath="/m"),
        "container TerminationMessagePath is not configurable: /m doesn't match regex ",
    ),
    (
        main(terminationMessagePolicy="File"),
        "container TerminationMessagePolicy is not configurable: File doesn't match regex ",
    ),
    (
        main(imagePullPolicy="Never"),
        f"container ImagePullPolicy is not configurable{CONFIG}: Never doesn't match regex ",
    ),
]


@pytest.mark.parametrize(("pod", "text"), SETTINGS, ids=[text for _, text in SETTINGS])
def test_every_setting_has_its_text(pod: dict[str, Any], text: str) -> None:
    assert refused(pod) == f"{ONE}{text}"


def test_all_mistakes_are_told_at_once_and_sorted() -> None:
    pod = {"metadata": {"name": "x", "namespace": "n"}, **main(image="i")}
    at = "\n\terror found at root.Environment: "
    assert refused(pod, "COMMAND") == (
        "invalid command config: Check Failed! 3 errors found:"
        f"{at}container Image is not configurable, set it in the experiment config: i does not equal "
        f"{at}pod Name is not a configurable option: x does not equal "
        f"{at}pod Namespace is not a configurable option: n does not equal "
    )


def test_what_others_may_say_is_no_mistake() -> None:
    own = {"securityContext": {}, "env": [], "tty": True}
    check_task_pod_spec("SHELL", {"apiVersion": "v1", "kind": "Pod", "spec": {"restartPolicy": "Always"}})
    check_task_pod_spec("COMMAND", {"spec": {"containers": [{"name": "determined-container", **own}]}})
