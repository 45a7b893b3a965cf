"""What runs in the container of an interactive task, from its final configuration: arguments, variables, files, ports.

Source: docs/reference/tasks-and-cli.md 3 and 4.1; docs/reference/harness-protocol.md 4.2, 5 and 6.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from libs.errors import InvalidRequest
from libs.events.orders import ProxyPort, TaskFile, UsersPod
from libs.ssh_keys import KeyPair
from libs.tasks.environments import bind_mounts_of, environment_of, proxy_ports_of
from libs.tasks.interactive.kinds import KINDS, InteractiveType, TaskService
from libs.tasks.interactive.tensorboard_sources import SHARED_FS, TensorboardSources
from libs.tasks.stored import StoredTask, to_document

MOST_BYTES: Final = 900_000
"""Of one that is stored: it becomes a message of the bus, with tokens and what its pool adds."""
MOST_ARGUMENT_BYTES: Final = 128 * 1024 - 1
SERVER_TOKEN: Final = "DET_NOTEBOOK_TOKEN"  # noqa: S105  (a variable's name)
_SSH: Final = "/run/determined/ssh"
_TENSORBOARD: Final = "tensorboard"
_OWNER_ONLY: Final = 0o600
_READABLE: Final = 0o644


class Launch(Struct, frozen=True, kw_only=True):
    """What is known of a task besides its configuration."""

    task_id: str
    slot_type: str
    """cpu, cuda or rocm: what it runs on."""
    port: int | None = None
    """Where its service listens, if it has one."""
    keys: KeyPair | None = None
    """Of a shell."""
    server_token: str = ""
    """Of a notebook: what its server asks for."""
    sources: TensorboardSources | None = None
    """Of a TensorBoard."""
    users_pod: UsersPod | None = None


def choose_port(service: TaskService, chance: float, *, taken: Collection[int]) -> int:
    """A port of the service, by ``chance`` (0 <= chance < 1), that is not ``taken`` as long as there is such a one."""
    free = [port for port in service.ports if port not in taken] or service.ports
    return free[int(chance * len(free))]


def stored_task(task_type: InteractiveType, config: Mapping[str, Any], launch: Launch) -> StoredTask:
    """The task as it is stored. Raises InvalidRequest when it is too large to be launched."""
    mounts = bind_mounts_of(config)
    host_path = launch.sources.shared_fs_host_path if launch.sources else None
    task = StoredTask(
        description=f"cmd-{launch.task_id}",
        environment=environment_of(config["environment"], launch.slot_type),
        users_pod=launch.users_pod,
        argv=_argv(task_type, config, launch),
        extra_environment=_variables(task_type, config, launch),
        files=_files(task_type, launch),
        work_dir=config["work_dir"],
        # The launchers know this one, and make the directory where it is missing.
        bind_mounts=tuple(mount for mount in mounts if not (host_path and mount.container_path == SHARED_FS)),
        shared_fs_host_path=host_path,
        proxy_ports=_proxy_ports(task_type, config, launch),
        shm_size_bytes=config["resources"].get("shm_size"),
    )
    check_size(task)
    return task


def check_size(task: StoredTask) -> None:
    """Raise InvalidRequest when a task is too large to be launched."""
    _check_lengths(task)
    size = len(msgspec.json.encode(to_document(task)))
    if size > MOST_BYTES:
        raise InvalidRequest(f"the configuration is too large: {size} bytes, of {MOST_BYTES} that are possible")


def _check_lengths(task: StoredTask) -> None:
    """Linux starts no program with longer arguments or variables (MAX_ARG_STRLEN, with its final NUL)."""
    named = [
        *(("an argument of the task", argument) for argument in task.argv),
        *((f"the variable {entry.partition('=')[0]}", entry) for entry in task.environment.variables),
        *((f"the variable {name}", f"{name}={value}") for name, value in task.extra_environment),
    ]
    for what, text in named:
        if (size := len(text.encode(errors="replace"))) > MOST_ARGUMENT_BYTES:
            limit = f"{MOST_ARGUMENT_BYTES} that Linux starts a program with"
            raise InvalidRequest(f"{what[:200]} is too long: {size} bytes, of {limit}")


def _argv(task_type: InteractiveType, config: Mapping[str, Any], launch: Launch) -> tuple[str, ...]:
    """Arguments of the entrypoint script; only commands run what their users say."""
    if task_type == "COMMAND":
        return tuple(config["entrypoint"] or ())
    if task_type == "SHELL":
        return ("-f", f"{_SSH}/sshd_config", "-p", str(launch.port), "-D", "-e")
    if task_type == "TENSORBOARD" and launch.sources is not None:
        storage = f"/run/determined/{_TENSORBOARD}/storage_config.json"
        return (storage, ",".join(launch.sources.log_dirs), *(config.get("tensorboard_args") or ()))
    return ()


def _variables(task_type: InteractiveType, config: Mapping[str, Any], launch: Launch) -> tuple[tuple[str, str], ...]:
    if task_type == "NOTEBOOK":
        return (
            ("NOTEBOOK_PORT", str(launch.port)),
            ("NOTEBOOK_CONFIG", msgspec.json.encode(config).decode()),
            ("NOTEBOOK_IDLE_TYPE", config["notebook_idle_type"]),
            (SERVER_TOKEN, launch.server_token),
        )
    if task_type == "TENSORBOARD" and launch.sources is not None:
        return (
            ("TENSORBOARD_PORT", str(launch.port)),
            ("TF_CPP_MIN_LOG_LEVEL", "3"),
            *((("DET_DEBUG", "true"),) if config["debug"] else ()),
            *launch.sources.variables,
        )
    return ()


def _files(task_type: InteractiveType, launch: Launch) -> tuple[TaskFile, ...]:
    if task_type == "SHELL" and launch.keys is not None:
        public = launch.keys.public.encode()
        return (
            TaskFile(path="ssh/authorized_keys_unmodified", content=public, mode=_READABLE),
            TaskFile(path="ssh/id_rsa", content=launch.keys.private.encode(), mode=_OWNER_ONLY),
            TaskFile(path="ssh/id_rsa.pub", content=public, mode=_OWNER_ONLY),
        )
    if task_type == "TENSORBOARD" and launch.sources is not None:
        storage = msgspec.json.encode(launch.sources.storage, order="deterministic")
        return (TaskFile(path=f"{_TENSORBOARD}/storage_config.json", content=storage, mode=_OWNER_ONLY),)
    return ()


def _proxy_ports(task_type: InteractiveType, config: Mapping[str, Any], launch: Launch) -> tuple[ProxyPort, ...]:
    """The service of the kind of task comes first; its id is that of the task, and nobody else's."""
    of_user = proxy_ports_of(config["environment"], launch.task_id)
    service = KINDS[task_type].service
    if service is None or launch.port is None:
        return of_user
    own = ProxyPort(
        service_id=launch.task_id, port=launch.port, proxy_tcp=service.is_tcp, unauthenticated=service.is_open
    )
    return (own, *(msgspec.structs.replace(port, service_id=f"{launch.task_id}:{port.port}") for port in of_user))
