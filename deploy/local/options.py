"""Chooses ports, folders and the interpreter of tasks at the first ``up``; later ones find them chosen."""

from __future__ import annotations

import hashlib
import os
import secrets
import subprocess
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Final

from deploy.local.configuration import certificates
from deploy.local.configuration.web_root import check_web_root
from deploy.local.failure import CannotStart
from deploy.local.kubernetes import choose_kubernetes
from deploy.local.layout import DEFAULT_API_PORT, EVERYWHERE, LOOPBACK, Layout, Options
from deploy.local.memory import has_room_for_standby
from deploy.local.servers.ports import free_port
from deploy.local.servers.postgres import closed_parent, postgres_user

CLIENT_VERSION: Final = "0.38.1"
TASK_PYTHON_VARIABLE: Final = "RESOLUTE_TASK_PYTHON"
ROOTS_DATA: Final = Path("/var/lib/resolute")


def choose(layout: Layout, kept: Options | None, arguments: Namespace, *, is_running: bool) -> Options:
    """The options of this state folder: those kept from before, if any, with what the command line changes.

    is_running  whether the system runs, so that it holds the ports that it has
    Nothing is written.
    """
    if kept is None:
        kept = _first_choice(layout, arguments.host or LOOPBACK, arguments.port)
    changes: dict[str, object] = {}
    if arguments.port:
        changes["api_port"] = arguments.port
    elif arguments.port == 0 and not is_running:
        changes["api_port"] = free_port(kept.host, kept.api_port)
    if arguments.slots is not None:
        changes["slots"] = arguments.slots
    if arguments.python:
        changes["python"] = str(Path(arguments.python).absolute())
    if arguments.config:
        changes["cluster_config"] = str(_existing(Path(arguments.config).resolve()))
    if named := getattr(arguments, "subscriber", None):
        changes["subscribers"] = tuple(dict.fromkeys([*kept.subscribers, *named]))
    standby = getattr(arguments, "standby", None)
    if standby is not None:
        changes["standby"] = standby == "yes"
    elif not is_running:
        changes["standby"] = has_room_for_standby()
    changes["kubernetes"] = choose_kubernetes(kept.kubernetes, arguments)
    options = replace(kept, **changes)  # type: ignore[arg-type]
    if options.kubernetes is not None:
        options = replace(options, host=EVERYWHERE)
    elif arguments.host not in (None, options.host):
        raise CannotStart(
            f"--host {arguments.host}: the api of {layout.root} listens on {options.host}, which is chosen at the "
            "first start, as passwords are; start another folder with it, named by --state"
        )
    else:
        options = replace(options, python=options.python or _find_python())
        _check_python(options.python)
    check_web_root(options.cluster_file(layout))
    certificate, authority = certificates.of_api(options.cluster_file(layout))
    return replace(options, certificate=certificate, authority=authority)


def _first_choice(layout: Layout, host: str, api_port: int | None) -> Options:
    # 0 asks for a free one; nothing asks for the usual one, if it is free.
    ports = [api_port or free_port(host, None if api_port == 0 else DEFAULT_API_PORT)]
    while len(ports) < 4:
        ports.append(free_port("127.0.0.1", avoid=ports))
    return Options(
        api_port=ports[0],
        nats_port=ports[1],
        postgres_port=ports[2],
        postgres_data=str(postgres_data(layout)),
        postgres_password=secrets.token_urlsafe(24),
        logs_port=ports[3],
        python="",
        slots=os.cpu_count() or 1,
        host=host,
    )


def _existing(file: Path) -> Path:
    if not file.is_file():
        raise CannotStart(f"--config {file}: there is no such file")
    return file


def postgres_data(layout: Layout) -> Path:
    """Where a new database is: below the state folder; for root only if the user of PostgreSQL can get there."""
    below = layout.root / "postgres"
    user = postgres_user()
    if user is None or closed_parent(below, user) is None:
        return below
    name = hashlib.sha256(str(layout.root).encode()).hexdigest()[:12]
    elsewhere = ROOTS_DATA / name / "postgres"
    elsewhere.parent.mkdir(parents=True, exist_ok=True)
    return elsewhere


def _find_python() -> str:
    """An interpreter that has the client: named by the environment, the one ``make setup`` makes, or our own."""
    beside = Path(__file__).parents[2] / ".venv-client" / "bin" / "python"
    for candidate in (os.environ.get(TASK_PYTHON_VARIABLE), str(beside) if beside.exists() else None):
        if candidate:
            return candidate
    return sys.executable


def _check_python(python: str) -> None:
    """Tasks import the client's harness; one that cannot would fail minutes later, with a worse message."""
    code = "from importlib.metadata import version; print(version('determined'))"
    try:
        found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False, timeout=30)
    except OSError as error:
        raise CannotStart(f"--python {python}: {error.strerror}") from error
    if found.stdout.strip() != CLIENT_VERSION:
        raise CannotStart(
            f"tasks would run with {python}, which does not have determined=={CLIENT_VERSION}: "
            f"{python} -m pip install determined=={CLIENT_VERSION}, or name another interpreter with --python"
        )
