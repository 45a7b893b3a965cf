"""Starts, stops and forgets the system of one state folder."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from argparse import Namespace
from collections.abc import Callable, Iterable
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from deploy import restarting
from deploy.last_lines import last_lines
from deploy.local import changes, disks
from deploy.local.configuration import certificates, initial_password, listening, plan
from deploy.local.configuration.status_ports import status_url
from deploy.local.failure import CannotStart, PortHeld
from deploy.local.layout import Layout, Options, write_private
from deploy.local.log_files import open_log
from deploy.local.options import choose
from deploy.local.servers.postgres import SUPERUSER
from deploy.local.servers.process import ProcessFailed
from deploy.local.supervision import processes
from deploy.local.supervision.environment import supervisor_environment
from libs.db.failures import DRIVER_ERRORS
from libs.db.services_role.role import ServicesRole, provide_role
from libs.errors import ResoluteError

READY_WITHIN_S: Final = 60.0
LAST_LINES: Final = 15
_LOOK_EVERY_S: Final = 0.05
T = TypeVar("T")


def start(layout: Layout, arguments: Namespace, *, without: Iterable[str] = ()) -> Options:
    """Start what does not run, and return when the system is ready. Raises CannotStart.

    without   services that somebody else runs
    """
    layout.create()
    _forget_environment(layout)
    kept = Options.load(layout)
    supervisor = processes.find(layout, processes.SUPERVISOR)
    options = choose(layout, kept, arguments, is_running=bool(listening.own_pids(layout)))
    services = plan.services(layout, options)
    held = services if getattr(arguments, "only_servers", False) else set(without)
    if kept is not None:
        changes.refuse_what_the_file_says(layout, kept, options)
        changes.refuse_to_move_tasks(layout, kept, options)
    restarts = False
    if supervisor is not None and kept is not None:
        restarts = _has_to_restart(layout, kept, options, services, held, started_at=supervisor.since)
    if supervisor is None or restarts:
        listening.expect_free_ports(layout, options)
    initial_password.prepare(layout, arguments)
    if restarts:
        stop(layout)
    options.save(layout)
    try:
        _run(layout, options, held)
    except (ResoluteError, OSError) as error:
        if kept is not None and options != kept:
            _go_back(layout, kept, error, runs_again=supervisor is not None)
        if isinstance(error, PortHeld) and supervisor is None:
            stop(layout)
        raise
    return options


def _has_to_restart(
    layout: Layout, kept: Options, options: Options, services: set[str], held: set[str], *, started_at: float
) -> bool:
    """Whether the system, which runs, has to be started anew for what is asked for. Raises CannotStart."""
    if held >= services:
        changes.refuse_running_services(layout, services)
    elif changes.only_servers_run(layout, services):
        return True
    is_newer = changes.has_newer_configuration(layout, options, started_at=started_at)
    if options == kept and not is_newer:
        return False
    changes.refuse_in_foreground(layout)
    print(f"starting anew for {changes.in_words(kept, options)}; tasks go on", file=sys.stderr)
    return True


def _go_back(layout: Layout, kept: Options, error: Exception, *, runs_again: bool) -> NoReturn:
    """The system as it was before somebody asked for what does not work. Raises CannotStart."""
    stop(layout)
    kept.save(layout)
    if not runs_again:
        raise CannotStart(f"{error}\nNothing is changed: `resolute up` starts the system as it was") from error
    _run(layout, kept, set())
    raise CannotStart(f"{error}\nNothing is changed: the system runs as before") from error


def _run(layout: Layout, options: Options, held: set[str]) -> None:
    """Start what does not run, and return when it is ready. Raises CannotStart."""
    plan.write_cluster(layout, options)
    if processes.find(layout, processes.SUPERVISOR) is None:
        _start_supervisor(layout, options, held)
    if options.kubernetes is not None:
        _introduce_launchers(layout, options, held)
    wait_until_ready(layout, options, held)


def _start_supervisor(layout: Layout, options: Options, held: set[str]) -> None:
    # A supervisor that was killed leaves its processes behind; ours must be the parents of what they watch.
    processes.end_all(layout, reversed(plan.process_names(layout)))
    for left in layout.run.glob("*.hold"):
        left.unlink()
    plan.write_settings(layout, options)
    if options.kubernetes is not None:
        held = held | plan.launchers(layout, options).keys()
    for name in held:
        layout.hold(name).touch()
    try:
        entries = plan.build_plan(layout, options)
    except ProcessFailed as error:
        raise CannotStart(str(error)) from error
    write_private(layout.plan_file, json.dumps(entries), keep_space=True)
    with open_log(layout.logs / "supervisor.log") as log:
        supervisor = subprocess.Popen(
            [sys.executable, *processes.supervisor_arguments(layout)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=supervisor_environment(os.environ),
            start_new_session=True,
        )
    processes.write_record(layout, processes.SUPERVISOR, supervisor.pid)


def _forget_environment(layout: Layout) -> None:
    """Plans of earlier releases have the environment of whoever started the system, with whatever keys were in it.

    A supervisor that runs has read its plan and needs it no more.
    """
    try:
        entries = json.loads(layout.plan_file.read_text())
    except (FileNotFoundError, ValueError):
        return
    if any("env" in entry for entry in entries):
        kept = [{key: value for key, value in entry.items() if key != "env"} for entry in entries]
        with contextlib.suppress(OSError):  # of a full disk: the next start tries again
            write_private(layout.plan_file, json.dumps(kept), keep_space=True)


def _introduce_launchers(layout: Layout, options: Options, without: set[str]) -> None:
    """Launchers of a cluster mark everything with the id of the installation, so they start when there is one."""
    names = plan.launchers(layout, options).keys() - without
    if not any(layout.hold(name).exists() for name in names):
        return
    _create_database(layout, options, time.monotonic() + READY_WITHIN_S)
    trusted = certificates.trust(options)
    give_up_at = time.monotonic() + READY_WITHIN_S
    cluster_id = _wait(lambda: _own_installation(layout, options, trusted), "api", layout, give_up_at)
    plan.write_launcher_settings(layout, options, cluster_id=cluster_id)
    for name in names:
        layout.hold(name).unlink(missing_ok=True)
    processes.hang_up(layout)


def _own_installation(layout: Layout, options: Options, trusted: ssl.SSLContext | None) -> str | None:
    """Id of the installation, once its api answers. Raises PortHeld when that of another one answers in its place."""
    answered = _answering_installation(options, trusted)
    if answered is None:
        return None
    database = plan.postgres(layout, options)
    try:
        database.prepare()
        stored = database.execute("SELECT cluster_id FROM cluster", database=SUPERUSER).strip()
    except ProcessFailed:
        return None  # not there yet, or not at this moment
    listening.expect_own_api(layout, options, answered=answered, stored=stored)
    return answered


def _answering_installation(options: Options, trusted: ssl.SSLContext | None) -> str | None:
    """Id of the installation whose api answers; None when there is none."""
    try:
        with urllib.request.urlopen(f"{options.master_url}/info", timeout=5, context=trusted) as response:  # noqa: S310
            return str(json.load(response).get("cluster_id", ""))
    except (OSError, ValueError, AttributeError, HTTPException):
        return None  # whatever is there, it is no api


def _create_database(layout: Layout, options: Options, give_up_at: float) -> None:
    database = plan.postgres(layout, options)
    try:
        database.prepare()
        _wait(database.is_ready, "postgres", layout, give_up_at)
        database.create_database()
    except ProcessFailed as error:
        raise CannotStart(str(error)) from error
    role = plan.services_role(layout)
    _wait(lambda: _is_provided(database.url(), role), "postgres", layout, give_up_at)


def _is_provided(url: str, role: ServicesRole) -> bool:
    """Whether the services can log in; tries to make it so. Raises FailedPrecondition."""
    try:
        asyncio.run(provide_role(url, role))
    except (OSError, *DRIVER_ERRORS):
        return False
    return True


def wait_until_ready(layout: Layout, options: Options, without: set[str]) -> None:
    """Return when requests are answered and tasks can start. Raises CannotStart with the last words of who is not."""
    give_up_at = time.monotonic() + READY_WITHIN_S
    _create_database(layout, options, give_up_at)
    if "api" not in without:
        trusted = certificates.trust(options)
        _wait(lambda: _own_installation(layout, options, trusted), "api", layout, give_up_at)
        _wait(lambda: _health(options, trusted) is not None, "api", layout, give_up_at)
        if "launcher" not in without:
            _wait(lambda: _has_pool(_health(options, trusted)), "launcher", layout, give_up_at)
    if "logs" not in without:
        _wait(lambda: _answers(status_url(layout, "logs", "readyz")), "logs", layout, give_up_at)
    _wait(lambda: _all_run(layout, without), "scheduler", layout, give_up_at)


def _wait(look: Callable[[], T | None], name: str, layout: Layout, give_up_at: float) -> T:
    """Call ``look`` until it returns something true, and return that. Raises CannotStart."""
    while not (found := look()):
        if processes.find(layout, processes.SUPERVISOR) is None:
            raise CannotStart(f"the supervisor ended:\n{last_lines(layout.logs / 'supervisor.log', LAST_LINES)}")
        if full := disks.full_disks(layout, Options.load(layout)):
            raise CannotStart(f"{name} is not ready, and {disks.in_words(full)}")
        if restarting.failures(layout.root, name) and (options := Options.load(layout)) is not None:
            listening.expect_own_ports(layout, options)
        if time.monotonic() > give_up_at:
            raise CannotStart(
                f"{name} is not ready; the end of its log:\n{last_lines(layout.logs / f'{name}.log', LAST_LINES)}"
            )
        time.sleep(_LOOK_EVERY_S)
    return found


def _health(options: Options, trusted: ssl.SSLContext | None) -> dict[str, Any] | None:
    """What the api says of the system; None while it does not answer, or has no database."""
    try:
        with urllib.request.urlopen(f"{options.master_url}/health", timeout=2, context=trusted) as response:  # noqa: S310
            report: dict[str, Any] = json.load(response)
    except (OSError, ValueError, HTTPException):
        return None
    return report


def _has_pool(health: dict[str, Any] | None) -> bool:
    """Has a launcher told the api of a pool that could run something?"""
    return health is not None and any(manager["status"] == "up" for manager in health["resource_managers"])


def _answers(url: str, trusted: ssl.SSLContext | None = None) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2, context=trusted):  # noqa: S310
            return True
    except (OSError, HTTPException):
        return False


def _all_run(layout: Layout, without: set[str]) -> bool:
    names = [name for name in plan.process_names(layout) if name not in without]
    return None not in processes.find_all(layout, names).values()


def stop(layout: Layout) -> list[str]:
    """Stop every process of the system; tasks go on. Returns the names of what was running."""
    names = plan.process_names(layout)
    running = [name for name, process in processes.find_all(layout, names).items() if process is not None]
    # The supervisor first: it takes the others along, in order.
    if processes.end(layout, processes.SUPERVISOR, timeout_s=60):
        running = running or [processes.SUPERVISOR]
    processes.end_all(layout, reversed(names))
    return running


def forget(layout: Layout) -> None:
    """Delete everything the system ever stored. It must be stopped, and its tasks ended."""
    options = Options.load(layout)
    if options is not None:
        data = Path(options.postgres_data)
        if not data.is_relative_to(layout.root):
            shutil.rmtree(data.parent, ignore_errors=True)
    shutil.rmtree(layout.root)
