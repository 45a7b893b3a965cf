"""``resolute up | status | down | reset``: the whole system on one machine."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Container
from datetime import UTC, datetime

from deploy import restarting
from deploy.command_line import Commands, behind_the_command
from deploy.local import disks, status_table, system
from deploy.local.configuration import bus_users, certificates, initial_password, plan
from deploy.local.kubernetes import add_arguments
from deploy.local.layout import DEFAULT_API_PORT, LOOPBACK, Layout, Options
from deploy.local.leftover_tasks import tasks
from deploy.local.supervision import bus_check, processes
from deploy.local.supervision.environment import service_environment
from deploy.terminal import colours
from libs.events.accounts import SUBSCRIBER_NAMES

NOT_RUNNING = 3
LAST_PORT = 65535


def add_parser(commands: Commands) -> None:
    shared = [behind_the_command()]
    up = commands.add_parser("up", parents=shared)
    up.add_argument("--host", help=f"at the first start: address the api listens on (default: {LOOPBACK})")
    up.add_argument(
        "--port",
        type=_port,
        help=f"port of the api; 0 for a free one (default: the one it had, at first {DEFAULT_API_PORT} if free)",
    )
    up.add_argument("--slots", type=int, help="slots of this machine (default: its cores)")
    up.add_argument("--python", help="interpreter for tasks; needs determined (default: the one made by make setup)")
    up.add_argument("--config", help="cluster configuration file (default: config/cluster.yaml in the state folder)")
    up.add_argument(
        "--subscriber",
        action="append",
        type=_subscriber_name,
        metavar="NAME",
        help="also a subscriber to events with limits of its own; its credentials are in subscribers/NAME.json",
    )
    up.add_argument("--service", choices=plan.SERVICES, help="run this one in the foreground, and the others if needed")
    up.add_argument(
        "--passwords",
        choices=initial_password.CHOICES,
        help="at the first start: make one for admin and determined and print it, or leave theirs blank "
        f"(default: ${initial_password.CHOICE_VARIABLE}, else blank where nobody else has an account)",
    )
    up.add_argument(
        "--standby",
        choices=("yes", "no"),
        help="a second scheduler, which takes over when the first dies (default: where there is memory for one)",
    )
    up.add_argument(
        "--only-servers",
        action="store_true",
        help="PostgreSQL and NATS alone, until the next down: for resolute import",
    )
    add_arguments(up)
    up.set_defaults(run=_on_state_folder(_up))

    status = commands.add_parser("status", parents=shared)
    status.add_argument("--json", action="store_true", help="for programs")
    status.set_defaults(run=_on_state_folder(_status))

    down = commands.add_parser("down", parents=shared)
    down.add_argument("--tasks", action="store_true", help="end running tasks too")
    down.set_defaults(run=_on_state_folder(_down))

    reset = commands.add_parser("reset", parents=shared)
    reset.add_argument("--yes", "-y", action="store_true", help="do not ask")
    reset.set_defaults(run=_on_state_folder(_reset))


def _on_state_folder(run: Callable[[Layout, argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    def run_or_explain(arguments: argparse.Namespace) -> int:
        layout = Layout.at(arguments.state)
        try:
            return run(layout, arguments)
        except OSError as error:
            if (explained := disks.explained(layout, error)) is None:
                raise
            raise explained from error

    return run_or_explain


def _up(layout: Layout, arguments: argparse.Namespace) -> int:
    if arguments.service:
        return _run_one(layout, arguments, arguments.service)
    started_at = time.monotonic()
    known = initial_password.initial_password(layout)
    options = system.start(layout, arguments)
    print(f"ready after {time.monotonic() - started_at:.1f} s")
    _print_status(layout, options)
    if arguments.only_servers:
        print("no service runs; afterwards: resolute down, and resolute up")
        return 0
    environment = {"DET_MASTER": options.master_url, **certificates.for_clients(options)}
    print(f"\n  export {' '.join(f'{name}={value}' for name, value in environment.items())}\n  det user whoami")
    made = initial_password.initial_password(layout)
    if made is not None and known is None:
        print(
            f"\nadmin and determined have the password {made}\nIt is shown this once, and kept in "
            f"{layout.initial_password}: note it, and delete the file."
        )
    return 0


def _run_one(layout: Layout, arguments: argparse.Namespace, service: str) -> int:
    """Take a service over from the supervisor until it ends or is interrupted, then hand it back."""
    taken = plan.with_standbys(service)
    system.start(layout, arguments, without=taken)
    for name in taken:
        layout.hold(name).touch()
    processes.hang_up(layout)
    try:
        while any(processes.find(layout, name) is not None for name in taken):
            time.sleep(0.05)
        entry = next(entry for entry in json.loads(layout.plan_file.read_text()) if entry["name"] == service)
        print(f"running {service}; Ctrl-C hands it back", file=sys.stderr)
        environment = service_environment(service, os.environ)
        child = subprocess.Popen(entry["argv"], env=environment, cwd=entry["cwd"], start_new_session=True)
        processes.write_record(layout, service, child.pid)
        signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        try:
            return child.wait()
        except KeyboardInterrupt:
            child.terminate()
            return child.wait()
    finally:
        processes.forget(layout, service)
        for name in taken:
            layout.hold(name).unlink(missing_ok=True)
        processes.hang_up(layout)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r}: use a number from 0 to {LAST_PORT}")
    return int(text)


def _subscriber_name(text: str) -> str:
    if not re.match(SUBSCRIBER_NAMES, text):
        raise argparse.ArgumentTypeError(f"{text!r}: use small letters, digits and hyphens, 32 at most")
    return text


def _status(layout: Layout, arguments: argparse.Namespace) -> int:
    options = Options.load(layout)
    if options is None:
        print(f"nothing was ever started in {layout.root}", file=sys.stderr)
        return NOT_RUNNING
    found = processes.find_all(layout, plan.process_names(layout))
    refused = _refused_streams(layout, options)
    full = disks.full_disks(layout, options)
    unsteady = restarting.restarting(layout.root)
    if arguments.json:
        report = {
            "master": options.master_url,
            "nats": bus_users.url(options),
            "subscriber": str(layout.subscriber),
            "nats_refuses": refused,
            "full_file_systems": [each.mount_point for each in full],
            "restarting": unsteady,
            "state": str(layout.root),
            "services": {
                name: {"pid": process.pid, "restarts": process.restarts, "since": _instant(process.since)}
                if process
                else None
                for name, process in found.items()
            },
        }
        print(json.dumps(report, indent=2))
    else:
        _print_status(layout, options, unsteady)
        if full:
            print(disks.in_words(full))
        elif refused:
            print(f"nats does not store {', '.join(refused)}: is there space below {layout.nats}?")
        for sentence in restarting.in_words(unsteady):
            print(sentence)
    return 0 if all(found.values()) and not (refused or full or unsteady) else NOT_RUNNING


def _instant(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _refused_streams(layout: Layout, options: Options) -> list[str]:
    """Streams of the bus that do not take messages; none while it does not run."""
    if processes.find(layout, "nats") is None:
        return []
    return bus_check.refused(bus_users.storage_check(layout, options, directory=layout.nats))


def _print_status(layout: Layout, options: Options, unsteady: Container[str] = ()) -> None:
    pools = plan.running_pools(layout)
    tasks_run = f"pods in {options.kubernetes.namespace}" if options.kubernetes else f"{options.slots} slots"
    where = {
        "api": options.master_url,
        "nats": bus_users.url(options),
        "postgres": f"{LOOPBACK}:{options.postgres_port}",
        "logs": f"http://{LOOPBACK}:{options.logs_port}",
        plan.STANDBY: "stands by",
        **{name: f"pool {pool}: {tasks_run}" for name, pool in pools.items()},
    }
    now = time.time()
    rows = []
    for name, process in processes.find_all(layout, plan.process_names(layout)).items():
        if process is None:
            rows.append(status_table.StatusRow(name, f"log: logs/{name}.log"))
        else:
            up_s, is_steady = now - process.since, name not in unsteady
            rows.append(
                status_table.StatusRow(
                    name, where.get(name, ""), process.pid, process.restarts, up_s, is_steady=is_steady
                )
            )
    print(status_table.as_text(rows, coloured=colours(sys.stdout)))
    print(f"state:  {layout.root}")
    print("bus:    subscribers connect with subscriber.json of the state folder")
    if options.kubernetes is None:
        print(f"tasks:  {options.python}")


def _down(layout: Layout, arguments: argparse.Namespace) -> int:
    stopped = system.stop(layout)
    print(f"stopped {', '.join(stopped)}" if stopped else "nothing was running")
    running = tasks.running(layout)
    if running and arguments.tasks:
        tasks.end(layout)
        print(f"ended {len(running)} tasks")
    elif running:
        print(f"{len(running)} tasks go on; the next `resolute up` finds them, `resolute down --tasks` ends them")
    return 0


def _reset(layout: Layout, arguments: argparse.Namespace) -> int:
    if not layout.options_file.exists():
        print(f"nothing to delete in {layout.root}")
        return 0
    if not arguments.yes:
        answer = input(f"Delete everything in {layout.root}: experiments, logs, checkpoints? [y/N] ")
        if answer.strip().lower() not in ("y", "yes"):
            return 1
    system.stop(layout)
    tasks.end(layout)
    tasks.forget_namespaces(layout)
    system.forget(layout)
    print(f"deleted {layout.root}")
    return 0
