from __future__ import annotations

from typing import Any

import pytest

from libs.cluster.config import TaskContainerDefaults
from libs.errors import InvalidRequest
from libs.shapes.shape import Object
from libs.tasks.generic import complete, read_request, stored_generic_task, submitted_config
from libs.tasks.stored import StoredTask

BASE: Object = {
    "entrypoint": ["sh", "-c", "echo hello"],
    "environment": {"environment_variables": ["A=1"], "image": "base"},
    "resources": {"slots": 4, "weight": 2},
}


def completed(config: Object, *, has_files: bool = False, **defaults: Any) -> Object:
    return complete(
        read_request({"entrypoint": ["true"], **config}),
        defaults=TaskContainerDefaults(**defaults),
        pool="gpus",
        default_priority=42,
        has_files=has_files,
    )


def stored(config: Object, **defaults: Any) -> StoredTask:
    return stored_generic_task("task", completed(config, **defaults), slot_type="cuda")


def test_fork_changes_whole_fields_of_the_outermost_level() -> None:
    assert submitted_config("", BASE) == BASE
    changed = submitted_config("resources: {slots: 0}\nwork_dir: /tmp\n", BASE)
    assert changed == {**BASE, "resources": {"slots": 0}, "work_dir": "/tmp"}


@pytest.mark.parametrize("text", ["", "  \n", "null", "# nothing"])
def test_without_anything_there_is_nothing_to_create(text: str) -> None:
    with pytest.raises(InvalidRequest, match="No config file nor forked task provided"):
        submitted_config(text, None)


@pytest.mark.parametrize(("text", "says"), [("[1]", "expected object, but got array"), ("a: [", "invalid YAML")])
def test_text_that_is_no_configuration_is_refused_also_for_a_fork(text: str, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        submitted_config(text, BASE)


REFUSED: list[tuple[Object, str]] = [
    ({"entrypoints": ["a"]}, 'yaml unmarshaling generic task config: json: unknown field "entrypoints"'),
    ({"resources": {"slot": 1}}, 'unknown field "slot" in resources'),
    ({"environment": {"images": "a"}}, 'unknown field "images" in environment'),
    # Those of interactive tasks only.
    ({"idle_timeout": "10m"}, 'unknown field "idle_timeout"'),
    ({"description": "a"}, 'unknown field "description"'),
    ({"entrypoint": 3}, "expected array or string, but got integer"),
    ({"preemption_timeout": -1}, "must be >= 0 but found -1"),
    ({"preemption_timeout": "1h"}, "expected integer, but got string"),
    ({"resources": {"slots": "many"}}, "expected integer, but got string"),
    ({"environment": {"registry_auth": {"password": "********"}}}, "hides a secret, give the secret itself"),
]


@pytest.mark.parametrize(("config", "says"), REFUSED)
def test_mistakes_are_named(config: Object, says: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_request({"entrypoint": ["true"], **config})
    assert says in str(refused.value)


SENSELESS: list[tuple[Object, str]] = [
    ({"entrypoint": []}, "error found at root: entrypoint is required"),
    ({"entrypoint": None}, "error found at root: entrypoint is required"),
    ({"resources": {"slots": -1}}, "slots must be >= 0"),
    ({"resources": {"weight": 0}}, "weight must be > 0"),
    ({"resources": {"priority": 100}}, "scheduling priority must be greater than 0 and less than 100"),
    ({"bind_mounts": [{"host_path": "a", "container_path": "/a"}]}, "host_path must be an absolute path"),
    ({"environment": {"pod_spec": {"metadata": {"name": "mine"}}}}, "error found at root.Environment"),
]


@pytest.mark.parametrize(("config", "says"), SENSELESS)
def test_what_makes_no_sense_is_refused(config: Object, says: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        completed(config)
    assert str(refused.value).startswith("invalid generic task config: Check Failed! ")
    assert says in str(refused.value)


def test_context_and_a_work_dir_exclude_each_other() -> None:
    with pytest.raises(InvalidRequest, match="cannot set work_dir and context directory at the same time"):
        completed({"work_dir": "/tmp"}, has_files=True)
    assert completed({}, has_files=True, work_dir="/home")["work_dir"] is None
    assert completed({"work_dir": "/tmp"})["work_dir"] == "/tmp"


@pytest.mark.parametrize(
    ("config", "single"), [({}, True), ({"is_single_node": None}, True), ({"is_single_node": False}, False)]
)
def test_runs_in_one_pod_unless_it_says_otherwise(config: Object, single: bool) -> None:
    request = read_request({"entrypoint": ["true"], "resources": {"slots": 8, **config}})
    assert (request.single_pod, request.pool.slots) == (single, 8)


def test_time_to_leave_is_that_of_the_pool_unless_it_is_given() -> None:
    assert completed({}, preemption_timeout=77)["preemption_timeout"] == 77
    assert completed({"preemption_timeout": 5}, preemption_timeout=77)["preemption_timeout"] == 5
    assert completed({"preemption_timeout": 0})["preemption_timeout"] == 0


def test_task_has_the_defaults_of_its_pool_below_what_it_says() -> None:
    task = stored(
        {
            "entrypoint": "echo hello",
            "environment": {
                "environment_variables": ["B=2", "C"],
                "proxy_ports": [{"proxy_port": 8000}],
                "image": {"cuda": "mine"},
            },
            "resources": {"shm_size": "1.5g"},
            "bind_mounts": [{"host_path": "/data", "container_path": "/data"}],
            "work_dir": "/work",
        },
        environment_variables=["A=1"],
        add_capabilities=["NET_ADMIN"],
        image="theirs",
    )
    assert task.argv == ("echo hello",)
    assert task.environment.image == "mine"
    assert task.environment.variables == ("A=1", "B=2", "C")
    assert task.environment.add_capabilities == ("NET_ADMIN",)
    assert (task.work_dir, task.shm_size_bytes) == ("/work", 1536 * 1024 * 1024)
    assert [(port.service_id, port.port) for port in task.proxy_ports] == [("task:8000", 8000)]
    assert [(mount.host_path, mount.container_path) for mount in task.bind_mounts] == [("/data", "/data")]
