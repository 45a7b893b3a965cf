"""``resolute why``: why a job, an experiment or a task waits, when it is expected to start, and what would help.

Exit codes: 0 something of it waits, and is explained; 3 nothing of it waits; 1 no api answers.
"""

from __future__ import annotations

import json
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from deploy.command_line import Commands, behind_the_command
from deploy.operations.master import Master, add_master_arguments, calling
from deploy.operations.moments import in_this_zone

EXPLAINED, NOTHING_WAITS = 0, 3
_PATH: Final = "/api/v1/resolute/waiting"
_SHOWN: Final = 20
"""Allocations of one job that are explained one by one."""

_FEWER_SLOTS: Final = "fewer slots, or another pool"
HELPS: Final[Mapping[str, str]] = {
    "no_room": f"{_FEWER_SLOTS}; `resolute check FILE` says which",
    "no_aux_room": "another pool (resources.resource_pool)",
    "no_resources": "smaller requests in environment.pod_spec, or another pool",
    "no_such_node": "another environment.pod_spec, or another pool: it cannot start as things are",
    "foreign_pods": "an administrator, who sees what else runs on the nodes, or another pool",
    "capacity_unknown": "nothing has to be done; an administrator, if it stays so: the launcher of the pool is silent",
    "maintenance": "a shorter resources.time_limit, with which it ends before the maintenance begins, or another pool",
    "too_large": f"{_FEWER_SLOTS}, or more nodes: it cannot start as things are",
    "equal_pods": "nothing while services are updated; else a multiple of max_slots_per_pod as the number of slots",
    "topology": "resources.topology with `preferred` in place of `required`, or fewer slots",
    "no_such_domain": "resources.topology with a wider level, or with `preferred`: it cannot start as things are",
    "out_of_service": "an administrator, who enables nodes again (`det agent enable`), or another pool",
    "nodes_excluded": "other log_policies: earlier attempts failed on these nodes",
    "behind_priority": "a better priority (`det job update JOB --priority N`)",
    "behind_reservation": f"nothing has to be done, as the time is bounded; sooner with {_FEWER_SLOTS}",
    "pool_growing": "nothing has to be done: it starts when the nodes are there; another pool, if they do not come",
    "preempting": "nothing has to be done: it starts when they have left",
    "moved": "nothing has to be done: it starts when its new nodes are free",
    "job_max_slots": "a larger max_slots (`det e set max-slots EXPERIMENT N`)",
    "slot_limit": "an administrator, who sets limits (`resolute limits list` shows them)",
    "hour_limit": "a shorter resources.time_limit, where some hours are left; an administrator, or the next period",
    "pool_quota": "an administrator, or another pool",
    "workspace_quota": "an administrator, or another workspace",
    "no_ports": "nothing has to be done: it starts when another trial ends",
}
"""Of reasons by code. Those of a newer api may have none here."""


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "why", description=__doc__, parents=[behind_the_command()], formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("subject", metavar="JOB|EXPERIMENT|TASK", help="id of what waits, as `det` shows it")
    parser.add_argument("--json", action="store_true", help="as the api says it")
    add_master_arguments(parser)
    parser.set_defaults(run=_run)


def _run(arguments: Namespace) -> int:
    with calling(arguments) as master:
        waiting = _waiting(master, arguments.subject)
    if arguments.json:
        print(json.dumps(waiting, indent=2))
    elif waiting:
        print(*as_lines(waiting), sep="\n")
    else:
        print(f"Nothing of {arguments.subject} waits for slots.")
    return EXPLAINED if waiting else NOTHING_WAITS


def _waiting(master: Master, subject: str) -> list[dict[str, Any]]:
    names = ("experimentId",) if subject.isdecimal() else ("jobId", "taskId")
    for name in names:
        found: list[dict[str, Any]] = master.call("GET", _PATH, **{name: subject})["waiting"]
        if found:
            return found
    return []


def as_lines(waiting: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for place, one in enumerate(waiting[:_SHOWN]):
        if place:
            yield ""
        yield from _explained(one)
    if len(waiting) > _SHOWN:
        yield f"\n{len(waiting) - _SHOWN} more wait; --json has all of them."


def _explained(one: Mapping[str, Any]) -> Iterator[str]:
    slots = "1 slot" if one["slots"] == 1 else f"{one['slots']} slots"
    yield f"{one['name']}: {slots} of pool {one['resourcePool']}, since {in_this_zone(one['requestedAt'])}"
    yield f"  Why: {one['reason'] or 'the queue has not been planned yet'}"
    if one["ahead"] is not None:
        before = "1 job, which wants" if one["ahead"] == 1 else f"{one['ahead']} jobs, which want"
        yield f"  Ahead of it: {before} {one['slotsAhead']} slots" if one["ahead"] else "  Ahead of it: nothing"
    if one["estimatedStart"] is not None:
        yield f"  Expected start: {in_this_zone(one['estimatedStart'])}, {one['basis']}"
    elif one["ahead"] is not None:
        yield "  Expected start: nobody can say; nothing that is expected to end makes room for it"
    else:
        yield "  Expected start: nobody can say now; it is very far behind, or no scheduler answers"
    if one["reasonCode"] in HELPS:
        yield f"  What helps: {HELPS[one['reasonCode']]}"
