"""Interactive tasks as the api would store them, one function per kind."""

from __future__ import annotations

import json
from typing import Any

from libs.cluster.config import SshConfig
from libs.events.orders import ProxyPort, TaskFile, TaskSpec
from libs.ssh_keys import KeyPair, new_key_pair
from tests.integration.launcher.launcher_harness import command

TASK = "5b2a9ea4-a6bb-4d2b-b42b-25e4064a3220"
ALLOCATION = f"{TASK}.1"
NOTEBOOK_TOKEN = "token-of-the-notebook"
KEYS = new_key_pair(SshConfig())


def notebook(port: int, **fields: Any) -> TaskSpec:
    environment = (
        ("NOTEBOOK_PORT", str(port)),
        ("NOTEBOOK_IDLE_TYPE", "kernels_or_terminals"),
        ("DET_NOTEBOOK_TOKEN", NOTEBOOK_TOKEN),
    )
    values: dict[str, Any] = {
        "task": TASK,
        "task_type": "NOTEBOOK",
        "extra_environment": environment,
        "proxy_ports": (ProxyPort(service_id=TASK, port=port),),
    }
    return command(**{**values, **fields})


def shell(port: int, keys: KeyPair = KEYS, **fields: Any) -> TaskSpec:
    values: dict[str, Any] = {
        "task": TASK,
        "task_type": "SHELL",
        "argv": ("-f", "/run/determined/ssh/sshd_config", "-p", str(port), "-D", "-e"),
        "files": (
            TaskFile(path="ssh/authorized_keys_unmodified", content=keys.public.encode(), mode=0o644),
            TaskFile(path="ssh/id_rsa", content=keys.private.encode()),
            TaskFile(path="ssh/id_rsa.pub", content=keys.public.encode()),
        ),
        "proxy_ports": (ProxyPort(service_id=TASK, port=port, proxy_tcp=True, unauthenticated=True),),
    }
    return command(**{**values, **fields})


def tensorboard(port: int, storage: dict[str, Any], *log_dirs: str, **fields: Any) -> TaskSpec:
    config = "/run/determined/tensorboard/storage_config.json"
    values: dict[str, Any] = {
        "task": TASK,
        "task_type": "TENSORBOARD",
        "argv": (config, ",".join(log_dirs)),
        "files": (TaskFile(path="tensorboard/storage_config.json", content=json.dumps(storage).encode(), mode=0o700),),
        "extra_environment": (("TENSORBOARD_PORT", str(port)), ("TF_CPP_MIN_LOG_LEVEL", "3")),
        "proxy_ports": (ProxyPort(service_id=TASK, port=port),),
    }
    return command(**{**values, **fields})
