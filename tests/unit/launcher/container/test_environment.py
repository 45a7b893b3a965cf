"""The variables of docs/reference/harness-protocol.md section 4."""

from __future__ import annotations

from typing import Any

import pytest

from libs.events.orders import Environment, TaskSpec
from services.launcher.container.environment import PodIdentity, oversized_variables, task_environment
from services.launcher.container.settings import TaskSettings
from tests.unit.launcher.specs import task, trial

POD = PodIdentity(name="pod-0", node="node-a", address="10.1.2.3")


def environment(spec: TaskSpec, *, slot_type: str = "cpu", **others: Any) -> dict[str, str]:
    values: dict[str, Any] = {"settings": TaskSettings(master_url="http://master:8080"), "pod": POD, **others}
    return task_environment(spec, allocation="t.1", pool="default", slot_type=slot_type, **values)


def user(*variables: str) -> Environment:
    return Environment(variables=variables)


ALL_TASKS = {
    "DET_TASK_ID": "t",
    "DET_ALLOCATION_ID": "t.1",
    "DET_RESOURCES_ID": "t.1",
    "DET_CONTAINER_ID": "pod-0",
    "DET_SESSION_TOKEN": "session",
    "DET_USER_TOKEN": "user",
    "DET_USER": "alice",
    "DET_TASK_TYPE": "COMMAND",
    "DET_WORKDIR": "/run/determined/workdir",
    "DET_RUN_DIR": "/run/determined",
    "PYTHONUSERBASE": "/run/determined/pythonuserbase",
    "PYTHONUNBUFFERED": "1",
    "DET_USE_TLS": "false",
    "DET_SEGMENT_ENABLED": "false",
    "DET_TASK_LOGGING_METADATA": '{"allocation_id":"t.1","task_id":"t"}',
    "DET_RESOURCES_TYPE": "k8s-job",
    "DET_K8S_RESOURCE_POOL": "default",
    "DET_CLUSTER_ID": "c",
    "DET_MASTER": "http://master:8080",
    "DET_MASTER_HOST": "master",
    "DET_MASTER_ADDR": "master",
    "DET_MASTER_PORT": "8080",
    "DET_SLOT_IDS": "[]",
    "DET_KUBERNETES_JOB_PARALLELISM": "1",
    "DET_KUBERNETES_POD_IP": "10.1.2.3",
    "DET_AGENT_ID": "node-a",
    "NVIDIA_VISIBLE_DEVICES": "void",
}


def test_every_task_gets_exactly_these() -> None:
    assert environment(task()) == ALL_TASKS


def test_trial_gets_these_besides() -> None:
    ports = {"DTRAIN_SSH_PORT": 12350, "C10D_PORT": 29400}
    found = environment(trial(ports=ports, num_pods=2, slots=4, latest_checkpoint="ckpt"))
    assert {name: value for name, value in found.items() if ALL_TASKS.get(name) != value} == {
        "DET_TASK_TYPE": "TRIAL",
        "DET_EXPERIMENT_ID": "5",
        "DET_TRIAL_ID": "7",
        "DET_TRIAL_RUN_ID": "2",
        "DET_TRIAL_SEED": "1234567",
        "DET_EXPERIMENT_CONFIG": '{"entrypoint":"python3 train.py","name":"x"}',
        "DET_HPARAMS": '{"global_batch_size":32,"lr":0.1}',
        "DET_STEPS_COMPLETED": "0",
        "DET_LATEST_CHECKPOINT": "ckpt",
        "DTRAIN_SSH_PORT": "12350",
        "C10D_PORT": "29400",
        "DET_SLOT_IDS": "[0,1]",
        "DET_KUBERNETES_JOB_PARALLELISM": "2",
    }


def test_no_checkpoint_means_no_variable() -> None:
    assert "DET_LATEST_CHECKPOINT" not in environment(trial())


@pytest.mark.parametrize(
    ("spec", "slot_type", "expected"),
    [
        (task(slots=2), "cuda", None),
        (task(slots=0), "cuda", "void"),
        (task(slots=2), "cpu", "void"),
        (task(slots=2), "rocm", None),
    ],
)
def test_gpus_are_hidden_from_those_without(spec: TaskSpec, slot_type: str, expected: str | None) -> None:
    assert environment(spec, slot_type=slot_type).get("NVIDIA_VISIBLE_DEVICES") == expected


@pytest.mark.parametrize(
    ("url", "host", "port", "tls"),
    [
        ("https://det.example.com", "det.example.com", "443", "true"),
        ("http://master", "master", "80", "false"),
        ("https://master:8443", "master", "8443", "true"),
    ],
)
def test_master_in_parts(url: str, host: str, port: str, tls: str) -> None:
    found = environment(task(), settings=TaskSettings(master_url=url))
    assert (found["DET_MASTER"], found["DET_MASTER_HOST"], found["DET_MASTER_PORT"]) == (url, host, port)
    assert found["DET_USE_TLS"] == tls


@pytest.mark.parametrize(
    ("file", "seen"),
    [(None, None), ("noverify", "noverify"), ("/etc/our.crt", "/run/determined/etc/ssl/master.crt")],
)
def test_certificate_of_the_master(file: str | None, seen: str | None) -> None:
    settings = TaskSettings(master_url="https://m", master_cert_file=file, master_cert_name="name")
    found = environment(task(), settings=settings)
    assert found.get("DET_MASTER_CERT_FILE") == seen
    assert found["DET_MASTER_CERT_NAME"] == "name"


def test_user_overrides_what_is_not_identity() -> None:
    found = environment(
        trial(environment=user("DET_SKIP_PIP_INSTALL=", "DET_TRIAL_SEED=9", "DET_MASTER=http://evil", "EMPTY")),
        image={"DET_SKIP_PIP_INSTALL": "1", "PATH": "/bin"},
    )
    assert found["DET_SKIP_PIP_INSTALL"] == ""
    assert found["DET_TRIAL_SEED"] == "9"
    assert found["EMPTY"] == ""
    assert found["PATH"] == "/bin"
    assert found["DET_MASTER"] == "http://master:8080"


@pytest.mark.parametrize(
    ("entries", "image", "seen"),
    [((), None, "1"), (("PYTHONUNBUFFERED=",), None, ""), ((), {"PYTHONUNBUFFERED": ""}, "")],
)
def test_python_prints_at_once_unless_somebody_says_otherwise(
    entries: tuple[str, ...], image: dict[str, str] | None, seen: str
) -> None:
    assert environment(task(environment=user(*entries)), image=image)["PYTHONUNBUFFERED"] == seen


@pytest.mark.parametrize("name", ["DET_TASK_ID", "DET_ALLOCATION_ID", "DET_SESSION_TOKEN", "DET_TRIAL_RUN_ID"])
def test_identity_cannot_be_overridden(name: str) -> None:
    assert environment(trial(environment=user(f"{name}=mine"))) == environment(trial())


def test_users_order_is_kept_so_that_one_can_refer_to_another() -> None:
    found = list(environment(task(environment=user("B=1", "A=$(B)", "PYTHONUSERBASE=/x", "C=$(A)"))))
    assert [name for name in found if name in ("A", "B", "C", "PYTHONUSERBASE")] == ["B", "A", "PYTHONUSERBASE", "C"]


def test_value_may_contain_equals_signs() -> None:
    assert environment(task(environment=user("OPTS=-Da=b -Dc=d")))["OPTS"] == "-Da=b -Dc=d"


def test_cluster_can_fill_in_what_differs_between_pods() -> None:
    found = environment(task(), pod=PodIdentity())
    assert not found.keys() & {"DET_AGENT_ID", "DET_KUBERNETES_POD_IP", "DET_CONTAINER_ID"}


@pytest.mark.parametrize(
    ("task_type", "work_dir", "expected"),
    [
        ("COMMAND", None, "/run/determined/workdir"),
        ("SHELL", "/home/$AGENT_USER/$DET_USER", "/home/al/alice"),
        ("SHELL", "home", "/home"),
        ("CHECKPOINT_GC", "/elsewhere", "/run/determined/workdir"),
    ],
)
def test_work_dir(task_type: str, work_dir: str | None, expected: str) -> None:
    assert environment(task(task_type, work_dir=work_dir))["DET_WORKDIR"] == expected


def test_variables_linux_cannot_take_are_found() -> None:
    assert oversized_variables({"A": "x" * 131_069, "B": "x" * 131_070}) == ["B"]
