"""Puts the files of an allocation in place, and makes the plan its supervisor runs."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from libs.errors import InvalidRequest
from libs.events.orders import TaskSpec
from services.launcher.backends.process.isolation.namespaces import Way
from services.launcher.backends.process.preparation.interpreter import installation_roots
from services.launcher.backends.process.preparation.pod_view import pod_mounts
from services.launcher.backends.process.preparation.user_names import group_for, passwd_for, shadow_for
from services.launcher.backends.process.preparation.variable_references import resolve_references
from services.launcher.backends.process.records import (
    AllocationFiles,
    Assignment,
    PodFiles,
    PodPlan,
    SupervisorPlan,
)
from services.launcher.backends.process.settings import ProcessSettings
from services.launcher.backends.process.supervision.spawning import PYTHON
from services.launcher.backends.process.supervision.supervisor import TERMINATION_LOG
from services.launcher.container.command import container_argv
from services.launcher.container.environment import (
    PodIdentity,
    oversized_variables,
    task_environment,
    user_variables,
)
from services.launcher.container.files import Placed, container_files
from services.launcher.container.paths import RUN_DIR, work_dir
from services.launcher.container.settings import TaskSettings
from services.launcher.container.trust import TaskTrust


class Machine(Struct, frozen=True, kw_only=True):
    """What every task of this launcher has in common; found out once, when the launcher starts."""

    settings: ProcessSettings
    tasks: TaskSettings
    hidden: tuple[str, ...]
    """Directories of which tasks see nothing, without symbolic links."""
    mountable: tuple[str, ...]
    """Directories in those that tasks may mount, without symbolic links."""
    node: str
    python: str
    """Interpreter of the tasks."""
    python_directories: tuple[str, ...]
    """What that interpreter needs to be seen."""
    way: Way
    may_change_user: bool
    """Whether tasks can run as the user of their order; otherwise they run as the launcher's."""
    changes: str
    image_environment: dict[str, str]
    """What takes the place of an image's variables."""
    scripts: dict[str, bytes]
    trust: TaskTrust


def make_plan(machine: Machine, files: AllocationFiles, assignment: Assignment) -> SupervisorPlan:
    """Write everything the pods of an allocation need below its directory; what is there already is replaced.

    Raises InvalidRequest for what can never run, and OSError when the machine is at fault.
    """
    spec = assignment.order.spec
    if spec is None:
        raise InvalidRequest("the order says run, but not what")
    if spec.shared_fs_host_path is not None:
        Path(spec.shared_fs_host_path).mkdir(parents=True, exist_ok=True)
    pods = tuple(
        _pod_plan(machine, files.pod(rank), spec, assignment, name) for rank, name in enumerate(assignment.pods)
    )
    return SupervisorPlan(
        with_user_namespace=machine.way.with_user_namespace,
        with_pid_namespace=machine.way.with_pid_namespace,
        hidden=machine.hidden,
        mountable=machine.mountable,
        system_targets=machine.settings.allowed_system_mounts,
        changes=machine.changes,
        pods=pods,
    )


def _pod_plan(machine: Machine, files: PodFiles, spec: TaskSpec, assignment: Assignment, name: str) -> PodPlan:
    uid, gid = (spec.owner.uid, spec.owner.gid) if machine.may_change_user else (None, None)
    if spec.pod_slots:
        spec = msgspec.structs.replace(spec, pod_slots=(spec.pod_slots[assignment.pods.index(name)],))
    for directory in (files.run, files.logs, files.opt, files.tmp, files.work, files.files, files.scratch, files.ship):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.opt.chmod(0o755)
    files.tmp.chmod(0o1777)
    trusted = machine.trust.read()
    placed = _place(container_files(spec, scripts=machine.scripts, master_cert=trusted), files, uid, gid)
    placed = {**placed, **_names(spec, files, uid, gid)}
    (files.run / TERMINATION_LOG).write_bytes(b"")
    (files.run / TERMINATION_LOG).chmod(0o600)
    if not (files.logs / "wake").exists():
        os.mkfifo(files.logs / "wake", 0o600)
    if uid is not None and gid is not None:
        for path in (files.run / TERMINATION_LOG, files.logs, files.logs / "wake", files.work):
            os.chown(path, uid, gid)
    (files.ship / "token").write_text(spec.session_token)
    (files.ship / "token").chmod(0o600)
    if trusted is not None:
        files.trusted.write_bytes(trusted)

    environment = task_environment(
        spec,
        allocation=assignment.order.allocation,
        pool=assignment.order.pool,
        slot_type="cpu",
        settings=machine.tasks,
        pod=PodIdentity(name=name, node=machine.node, address=machine.settings.address),
        image={**machine.image_environment, **home_of(uid)},
    )
    environment = resolve_references(environment, of_user=dict(user_variables(spec.environment.variables)))
    if too_long := oversized_variables(environment):
        raise InvalidRequest(f"environment variable {too_long[0]} is longer than the 128 KiB that Linux allows")
    cwd = work_dir(spec)
    is_missing = not cwd.startswith(RUN_DIR) and not os.path.isdir(cwd)
    return PodPlan(
        name=name,
        run_dir=str(files.run),
        scratch=str(files.scratch),
        wrapper_log=str(files.wrapper_log),
        argv=container_argv(
            spec,
            python=PYTHON,
            when_full="block",
            cap_bytes=machine.settings.max_unshipped_bytes,
        ),
        environment=environment,
        cwd=cwd,
        mounts=pod_mounts(
            spec,
            files=files,
            hidden=machine.hidden,
            wheels_dir=machine.settings.wheels_dir,
            visible=(*machine.python_directories, *installation_roots(PYTHON), *machine.settings.visible_paths),
            placed=placed,
            missing_work_dir=cwd if is_missing else None,
        ),
        uid=uid,
        gid=gid,
    )


def _place(items: Iterable[Placed], files: PodFiles, uid: int | None, gid: int | None) -> Mapping[str, str]:
    """Write files and directories; returns where those outside ``/run/determined`` are, by path in the container."""
    elsewhere: dict[str, str] = {}
    for item in items:
        if item.path == RUN_DIR or item.path.startswith(f"{RUN_DIR}/"):
            target = files.root / "run" / item.path.removeprefix(RUN_DIR).lstrip("/")
        elif os.path.isdir(os.path.dirname(item.path)):
            target = files.files / str(len(elsewhere))
            elsewhere[item.path] = str(target)
        else:
            continue  # a configuration for a program that this machine does not have
        if item.content is None:
            target.mkdir(exist_ok=True)
        else:
            target.unlink(missing_ok=True)
            target.write_bytes(item.content)
        target.chmod(item.mode)
        if uid is not None and gid is not None and item.owner == "user":
            os.chown(target, uid, gid)
    return elsewhere


def _names(spec: TaskSpec, files: PodFiles, uid: int | None, gid: int | None) -> Mapping[str, str]:
    """passwd and group of a task, and shadow of a shell, by path in the container, where this machine does not know its
    user or group."""
    is_shell = spec.task_type == "SHELL"
    if uid is None and not is_shell and _has_name(os.geteuid()):
        return {}  # it runs as the launcher's user, whoever it is for
    home = home_of(uid).get("HOME", os.environ.get("HOME", "/"))
    as_uid, as_gid = (os.geteuid() if uid is None else uid), (os.getegid() if gid is None else gid)
    passwd = passwd_for(
        Path("/etc/passwd").read_text(errors="surrogateescape"),
        user=spec.owner.user,
        uid=as_uid,
        gid=as_gid,
        home=home if home != "/" else work_dir(spec),
    )
    group = group_for(
        Path("/etc/group").read_text(errors="surrogateescape"),
        group=spec.owner.group,
        gid=as_gid,
        with_tty=not is_shell or as_uid == 0,
    )
    shadow = shadow_for(spec.owner.user) if is_shell and passwd is not None else None
    placed = {}
    for name, mode, content in (("passwd", 0o644, passwd), ("group", 0o644, group), ("shadow", 0o600, shadow)):
        if content is None:
            continue
        target = files.files / name
        target.write_text(content, errors="surrogateescape")
        target.chmod(mode)
        if uid is not None and gid is not None:
            os.chown(target, uid, gid)
        placed[f"/etc/{name}"] = str(target)
    return placed


def _has_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def home_of(uid: int | None) -> dict[str, str]:
    """Home of a user who is not the launcher's; ``/`` is taken for none by the entrypoint, which finds another."""
    if uid is None or uid == os.geteuid():
        return {}
    try:
        return {"HOME": pwd.getpwuid(uid).pw_dir}
    except KeyError:
        return {"HOME": "/"}
