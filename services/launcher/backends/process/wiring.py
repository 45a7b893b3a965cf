"""Finds out what this machine allows, and opens the process backend on it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import structlog

from libs.clock import Clock
from libs.errors import FailedPrecondition
from services.launcher.backends.process.backend import ProcessBackend
from services.launcher.backends.process.isolation.probe import find_way
from services.launcher.backends.process.preparation.interpreter import find_python, needed_directories
from services.launcher.backends.process.preparation.plan import Machine
from services.launcher.backends.process.preparation.pod_view import image_environment
from services.launcher.backends.process.records import StateFiles, try_lock
from services.launcher.backends.process.settings import ProcessSettings
from services.launcher.backends.process.supervision.spawning import IMPORT_ROOT, PYTHON
from services.launcher.container.settings import TaskSettings
from services.launcher.container.trust import TaskTrust
from services.launcher.files import load_scripts
from services.launcher.task_lines import Lines

log = structlog.get_logger()


@asynccontextmanager
async def open_process_backend(
    *, pool: str, settings: ProcessSettings, tasks: TaskSettings, clock: Clock, environ: Mapping[str, str], lines: Lines
) -> AsyncIterator[ProcessBackend]:
    """The backend of this machine for the duration of the block; tasks outlive it.

    environ  the launcher's environment, of which tasks get a little
    lines    takes what the log of a task has to be told
    Raises CannotIsolate when the machine does not allow it, InvalidRequest for settings that cannot work, and
    FailedPrecondition when another launcher uses the state directory.
    """
    way = await find_way(PYTHON, IMPORT_ROOT)
    if not way.with_pid_namespace:
        log.warning("backend.processes_not_isolated", reason="no /proc may be mounted here; tasks see all processes")
    state = StateFiles(settings.state_dir)
    state.make()
    lock = try_lock(state.lock)
    if lock is None:
        raise FailedPrecondition(f"another launcher is using the state directory {state.root}")
    python = find_python(settings.python)
    image = image_environment(
        environ,
        python=python,
        passed=settings.pass_environment,
        has_certificate=tasks.has_trust,
    )
    machine = Machine(
        settings=settings,
        tasks=tasks,
        hidden=_real(str(state.root), *settings.hidden_paths),
        mountable=_real(*settings.mountable_paths),
        node=settings.node_name or os.uname().nodename,
        python=python,
        python_directories=await needed_directories(python, image),
        way=way,
        may_change_user=os.geteuid() == 0 and not way.with_user_namespace,
        changes=str(state.changes),
        image_environment=image,
        scripts=load_scripts(),
        trust=TaskTrust(tasks),
    )
    slots = settings.slots if settings.slots is not None else os.cpu_count() or 1
    backend = ProcessBackend(pool=pool, machine=machine, state=state, slots=slots, clock=clock, lines=lines)
    try:
        await backend.adopt()
        yield backend
    finally:
        await backend.close()
        os.close(lock)


def _real(*paths: str) -> tuple[str, ...]:
    return tuple(os.path.realpath(path) for path in paths)
