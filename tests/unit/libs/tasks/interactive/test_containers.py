from __future__ import annotations

import json
from typing import Any

import pytest

from libs.cluster.config import TaskContainerDefaults
from libs.errors import InvalidRequest
from libs.events.orders import ProxyPort
from libs.ssh_keys import KeyPair
from libs.tasks.interactive.containers import Launch, choose_port, stored_task
from libs.tasks.interactive.defaults import default_config
from libs.tasks.interactive.kinds import KINDS, InteractiveType
from libs.tasks.interactive.layers import read_submitted
from libs.tasks.interactive.overlay import overlay
from libs.tasks.interactive.tensorboard_sources import TensorboardSources
from libs.tasks.stored import StoredTask

SOURCES = TensorboardSources(
    log_dirs=("/determined_shared_fs/c/tensorboard/experiment/1/", "/d/c/tensorboard/experiment/2/"),
    storage={"type": "directory", "container_path": "/d"},
    variables=(("AWS_BUCKET", "b"),),
    bind_mounts=(
        {"host_path": "/h", "container_path": "/determined_shared_fs"},
        {"host_path": "/i", "container_path": "/d"},
    ),
)


def config(**submitted: Any) -> dict[str, Any]:
    return overlay(default_config(TaskContainerDefaults()), read_submitted(submitted))


def stored(kind: InteractiveType, submitted: dict[str, Any] | None = None) -> StoredTask:
    launch = Launch(
        task_id="id",
        slot_type="cpu",
        port=None if kind == "COMMAND" else 3000,
        keys=KeyPair("private\n", "public\n"),
        server_token="token",
        sources=SOURCES if kind == "TENSORBOARD" else None,
    )
    return stored_task(kind, config(**(submitted or {})), launch)


def test_commands_run_what_their_users_say() -> None:
    task = stored("COMMAND", {"entrypoint": ["echo", "a b"], "environment": {"proxy_ports": [{"proxy_port": 80}]}})
    assert task.argv == ("echo", "a b")
    assert task.proxy_ports == (ProxyPort(service_id="id:80", port=80),)
    assert task.description == "cmd-id", "the names of its pods have to tell which task it is"


def test_no_other_task_runs_what_its_user_says() -> None:
    for kind in ("NOTEBOOK", "SHELL", "TENSORBOARD"):
        assert "evil" not in stored(kind, {"entrypoint": ["evil"]}).argv


def test_notebooks_know_their_configuration_and_token() -> None:
    task = stored("NOTEBOOK", {"notebook_idle_type": "activity", "description": "ü"})
    variables = dict(task.extra_environment)
    assert json.loads(variables.pop("NOTEBOOK_CONFIG")) == config(notebook_idle_type="activity", description="ü")
    assert variables == {"NOTEBOOK_PORT": "3000", "NOTEBOOK_IDLE_TYPE": "activity", "DET_NOTEBOOK_TOKEN": "token"}
    assert task.proxy_ports == (ProxyPort(service_id="id", port=3000),)


def test_shells_have_their_keys_and_let_ssh_ask_who_comes() -> None:
    task = stored("SHELL")
    assert task.argv == ("-f", "/run/determined/ssh/sshd_config", "-p", "3000", "-D", "-e")
    assert [(file.path, file.content, oct(file.mode)) for file in task.files] == [
        ("ssh/authorized_keys_unmodified", b"public\n", "0o644"),
        ("ssh/id_rsa", b"private\n", "0o600"),
        ("ssh/id_rsa.pub", b"public\n", "0o600"),
    ]
    assert task.proxy_ports == (ProxyPort(service_id="id", port=3000, proxy_tcp=True, unauthenticated=True),)


def test_tensorboards_are_told_where_to_look() -> None:
    task = stored(
        "TENSORBOARD",
        {
            "tensorboard_args": ["--samples_per_plugin=images=10"],
            "debug": True,
            "bind_mounts": list(SOURCES.bind_mounts),
        },
    )
    assert task.argv == (
        "/run/determined/tensorboard/storage_config.json",
        "/determined_shared_fs/c/tensorboard/experiment/1/,/d/c/tensorboard/experiment/2/",
        "--samples_per_plugin=images=10",
    )
    assert dict(task.extra_environment) == {
        "TENSORBOARD_PORT": "3000",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "DET_DEBUG": "true",
        "AWS_BUCKET": "b",
    }
    [file] = task.files
    assert (file.path, json.loads(file.content)) == ("tensorboard/storage_config.json", SOURCES.storage)
    assert task.shared_fs_host_path == "/h"
    assert [mount.container_path for mount in task.bind_mounts] == ["/d"]


def test_the_service_of_a_task_keeps_its_name() -> None:
    ports = [{"proxy_port": 80, "default_service_id": True}]
    assert [port.service_id for port in stored("NOTEBOOK", {"environment": {"proxy_ports": ports}}).proxy_ports] == [
        "id",
        "id:80",
    ]


@pytest.mark.parametrize("chance", [0.0, 0.5, 0.999999])
def test_ports_of_others_are_left_alone(chance: float) -> None:
    service = KINDS["SHELL"].service
    assert service is not None
    ports = list(service.ports)
    assert choose_port(service, chance, taken=ports[1:]) == ports[0]
    assert choose_port(service, chance, taken=ports) in ports, "on a cluster every pod has ports of its own"


def test_what_makes_no_message_of_the_bus_is_refused_at_once() -> None:
    with pytest.raises(InvalidRequest, match=r"^the configuration is too large: [0-9]+ bytes, of 900000 "):
        stored("COMMAND", {"entrypoint": ["x" * 100_000] * 10})
