"""A backup of the system of a state folder, and the servers of one that is restored: without any service."""

from __future__ import annotations

import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from deploy.backup.configuration import Configuration, UpOptions
from deploy.local import cli, system
from deploy.local.layout import Layout, Options, write_private
from deploy.local.options import postgres_data
from deploy.local.servers.ports import free_port
from deploy.local.supervision import processes
from libs.errors import FailedPrecondition


def up_options(layout: Layout) -> UpOptions | None:
    """What the system of this folder was started with; None when none ever was."""
    options = Options.load(layout)
    if options is None:
        return None
    return UpOptions(
        host=options.host,
        port=options.api_port,
        slots=options.slots,
        python=options.python,
        subscribers=options.subscribers,
        kubernetes=asdict(options.kubernetes) if options.kubernetes else None,
    )


@contextmanager
def servers(layout: Layout, configuration: Configuration, *, host: str | None) -> Iterator[None]:
    """PostgreSQL and NATS of this folder, to be filled; stopped afterwards, unless they ran before.

    A folder without a system gets one with ``configuration``, which is gone again when the filling fails.

    host  where the api of a new one listens, instead of where it did
    Raises FailedPrecondition and CannotStart.
    """
    if processes.find(layout, processes.SUPERVISOR) is not None:
        yield
        return
    is_new = Options.load(layout) is None
    arguments = _of_new(layout, configuration, host) if is_new else _parsed([])
    try:
        system.start(layout, arguments)
        if is_new:
            # Users have the passwords that are restored.
            layout.initial_password.unlink(missing_ok=True)
        yield
    except BaseException:
        system.stop(layout)
        if is_new:
            system.forget(layout)
        raise
    system.stop(layout)


def _of_new(layout: Layout, configuration: Configuration, host: str | None) -> Namespace:
    """Make a folder in which nothing was ever started; returns the arguments of ``resolute up`` for it."""
    try:
        _expect_nothing_in(layout.root)
        arguments = _arguments(configuration.up, host)
        layout.create()
    except OSError as error:
        raise FailedPrecondition(f"{layout.root}: {error.strerror}; name another folder with --state") from error
    try:
        _expect_nothing_in(postgres_data(layout))
        if configuration.cluster is not None:
            write_private(layout.config / "cluster.yaml", configuration.cluster.decode())
    except BaseException:
        shutil.rmtree(layout.root)
        raise
    return arguments


def _expect_nothing_in(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise FailedPrecondition(f"{folder} is not empty; move it away, or name another folder with --state")


def _arguments(up: UpOptions | None, host: str | None) -> Namespace:
    """Of ``resolute up`` on this machine, as far as it is like that of the backup. Raises FailedPrecondition."""
    if up is None:
        return _parsed(["--host", host] if host else [])
    host = host or up.host
    options = ["--host", host, "--port", str(_port(host, up.port)), "--slots", str(up.slots), "--passwords", "initial"]
    for name in up.subscribers:
        options += ["--subscriber", name]
    if up.kubernetes is not None:
        options += _of_pods(up.kubernetes)
    elif Path(up.python).exists():
        options += ["--python", up.python]
    return _parsed(options)


def _port(host: str, preferred: int) -> int:
    try:
        return free_port(host, preferred)
    except OSError as error:
        raise FailedPrecondition(
            f"the api of the backup listens on {host}, which is no address of this machine: say which one with --host"
        ) from error


def _of_pods(kubernetes: dict[str, Any]) -> list[str]:
    kubeconfig = Path(kubernetes["kubeconfig"])
    if not kubeconfig.exists():
        raise FailedPrecondition(f"tasks are pods in this backup: put the kubeconfig of their cluster at {kubeconfig}")
    options = ["--kubeconfig", str(kubeconfig)]
    for name in ("namespace", "image", "slot_type", "max_slots_per_pod", "shipper"):
        if value := kubernetes.get(name):
            options += [f"--{name.replace('_', '-')}", str(value)]
    return options


def _parsed(options: list[str]) -> Namespace:
    parser = ArgumentParser()
    cli.add_parser(parser.add_subparsers())
    return parser.parse_args(["up", "--only-servers", *options])
