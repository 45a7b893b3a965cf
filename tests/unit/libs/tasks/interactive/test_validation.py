from __future__ import annotations

from typing import Any

import pytest

from libs.cluster.config import TaskContainerDefaults
from libs.errors import InvalidRequest
from libs.tasks.interactive.defaults import default_config
from libs.tasks.interactive.layers import read_submitted
from libs.tasks.interactive.overlay import overlay
from libs.tasks.interactive.validation import check_config

Object = dict[str, Any]


def refusal(config: Object, task_type: str = "SHELL") -> str:
    with pytest.raises(InvalidRequest) as caught:
        check_config(task_type, overlay(default_config(TaskContainerDefaults()), read_submitted(config)))
    return str(caught.value)


WRONG = [
    ({"resources": {"weight": 0}}, "root.Resources: weight must be > 0: "),
    (
        {"resources": {"priority": 100}},
        "root.Resources: scheduling priority must be greater than 0 and less than 100: ",
    ),
    ({"resources": {"priority": 0}}, "root.Resources: scheduling priority must be greater than 0 and less than 100: "),
    ({"resources": {"is_single_node": True}}, "root.Resources: resources.is_single_node cannot be set for NTSCs: "),
    ({"resources": {"max_slots": -1}}, "root.Resources: max_slots must be >= 0: "),
    (
        {"bind_mounts": [{"host_path": "a", "container_path": "/b"}]},
        "root.BindMounts[0]: host_path must be an absolute path: ",
    ),
    (
        {"bind_mounts": [{"host_path": "/a", "container_path": "."}]},
        'root.BindMounts[0]: container_path must not be ".": ',
    ),
    (
        {"bind_mounts": [{"host_path": "/a", "container_path": ""}]},
        'root.BindMounts[0]: container_path must not be ".": ',
    ),
    ({"resources": {"shm_size": 10**30}}, "root.Resources: shm_size must be <= 2^53: "),
    ({"description": "x" * 1001}, "root: the length of description must be <= 1000: 1001 is greater than 1000"),
    ({"work_dir": "home"}, "root: work_dir must be an absolute path: found home"),
    ({"work_dir": ""}, "root: work_dir must be an absolute path: "),
    ({"notebook_idle_type": "never"}, "root: invalid notebook idle type: "),
    ({"idle_timeout": "-1m"}, "root: idle_timeout must be >= 0: "),
    (
        {"environment": {"pod_spec": {"metadata": {"name": "x"}}}},
        "root.Environment: pod Name is not a configurable option: x does not equal ",
    ),
]


@pytest.mark.parametrize(("config", "says"), WRONG, ids=[says for _, says in WRONG])
def test_what_cannot_be_is_refused(config: Object, says: str) -> None:
    assert refusal(config).startswith(f"Check Failed! 1 errors found:\n\terror found at {says}")


def test_all_findings_come_at_once_and_sorted() -> None:
    lines = refusal({"resources": {"slots": -1, "weight": -1}}, "NOTEBOOK").splitlines()
    assert lines == [
        "invalid notebook config: Check Failed! 3 errors found:",
        "\terror found at root.Resources: slots must be >= 0: -1 is less than 0",
        "\terror found at root.Resources: weight must be > 0: -1 is not greater than 0",
        "\terror found at root: resources.slots must be >= 0: -1 is less than 0",
    ]


@pytest.mark.parametrize("task_type", ["COMMAND", "NOTEBOOK", "SHELL", "TENSORBOARD"])
def test_defaults_are_sound(task_type: str) -> None:
    check_config(task_type, default_config(TaskContainerDefaults()))
