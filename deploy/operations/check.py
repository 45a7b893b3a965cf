"""``resolute check``: what would become of an experiment, or another task, if it was submitted now. Nothing is stored.

Exit codes: 0 it (of an experiment the first trial) would start now; 2 it would be refused; 3 it would wait; 4 it could
not even start if nothing else ran; 1 nobody can say, as no api or scheduler answers.
"""

from __future__ import annotations

import json
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from deploy.command_line import Commands, behind_the_command
from deploy.operations.master import Master, add_master_arguments, calling
from deploy.operations.moments import in_this_zone
from libs.errors import FailedPrecondition

STARTS, REFUSED, WAITS, IMPOSSIBLE = 0, 2, 3, 4
_PATH: Final = "/api/v1/resolute/check"
_TASKS: Final = ("notebook", "shell", "command", "generic")


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "check", description=__doc__, parents=[behind_the_command()], formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="configuration, as for `det e create` or `det notebook start`"
    )
    parser.add_argument("context", type=Path, nargs="?", metavar="CONTEXT", help="its folder, which has to be there")
    parser.add_argument("--task", choices=_TASKS, help="it configures such a task, not an experiment")
    parser.add_argument("--template", default="", help="template that it is merged into")
    parser.add_argument(
        "--project", type=int, default=0, metavar="ID", help="project that an experiment or generic task goes to"
    )
    parser.add_argument(
        "--workspace", type=int, default=0, metavar="ID", help="workspace that a notebook, shell or command goes to"
    )
    parser.add_argument("--json", action="store_true", help="as the api says it")
    add_master_arguments(parser)
    parser.set_defaults(run=_run)


def _run(arguments: Namespace) -> int:
    config = arguments.file.read_text()
    if arguments.context is not None and not arguments.context.is_dir():
        raise FailedPrecondition(f"{arguments.context} is no folder")
    asked = {"config": config, "template": arguments.template, "projectId": arguments.project}
    path = _PATH
    if arguments.task is not None:
        asked |= {"type": f"TASK_TYPE_{arguments.task.upper()}", "workspaceId": arguments.workspace}
        path = f"{_PATH}/tasks"
    elif arguments.workspace:
        raise FailedPrecondition("--workspace is for tasks (--task); an experiment goes to a project (--project)")
    with calling(arguments) as master:
        found = _checked(master, path, asked)
    if arguments.json:
        print(json.dumps(found, indent=2))
    elif "refused" in found:
        print(f"It would be refused: {found['refused']}")
    else:
        print(*as_lines(found), sep="\n")
    return exit_code(found)


def _checked(master: Master, path: str, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """The reply, or why a submission would be refused."""
    try:
        found: dict[str, Any] = master.call("POST", path, asked)
    except FailedPrecondition as error:
        return {"refused": str(error)}
    return found


def exit_code(found: Mapping[str, Any]) -> int:
    if "refused" in found:
        return REFUSED
    if found["start"]["startsNow"]:
        return STARTS
    return WAITS if found["start"]["possible"] else IMPOSSIBLE


def as_lines(found: Mapping[str, Any]) -> Iterator[str]:
    start = found["start"]
    yield f"It is valid. {_what(found)}"
    if start["startsNow"]:
        yield f"It would start now{_on(start)}."
    elif not start["possible"]:
        yield f"It cannot run there: {start['reason']}."
    else:
        yield f"It would wait: {start['reason']}."
        yield f"Expected start: {_when(start)}"
    for pool in found.get("unfitPools") or ():
        yield f"It cannot run in pool {pool['resourcePool']}: {pool['reason']}."
    project = f" (project {found['projectId']})" if found["projectId"] else ""
    yield (
        f"It counts against the limits and shares of {found['username']} and of workspace {found['workspaceId']}"
        f"{project}."
    )
    if found["sooner"]:
        yield "Sooner with:"
        yield from (f"  {each['change']}: {_short(each['start'])}" for each in found["sooner"])


def _what(found: Mapping[str, Any]) -> str:
    start, trials = found["start"], found["trials"]
    each = {0: "it asks", 1: "its trial asks"}.get(trials, f"each of its first {trials} trials asks")
    pods = f", in {start['pods']} pods of {start['slotsPerPod']}" if start["pods"] > 1 else ""
    if start["pods"] * start["slotsPerPod"] > max(start["slots"], 1):
        pods = f", in pods of at most {start['slotsPerPod']}"  # how many there are is for the plan to say
    slots = "1 slot" if start["slots"] == 1 else f"{start['slots']} slots"
    return f"In pool {start['resourcePool']}, {each} for {slots}{pods}, with priority {found['priority']}."


def _on(start: Mapping[str, Any]) -> str:
    nodes = sorted(set(start["nodes"]))
    return f", on {', '.join(nodes)}" if nodes else ""


def _when(start: Mapping[str, Any]) -> str:
    if start["estimatedStart"] is None:
        return "nobody can say; nothing that is expected to end makes room for it."
    basis = f" ({start['basis']})" if start["basis"] else ""
    return f"{in_this_zone(start['estimatedStart'])}{basis}."


def _short(start: Mapping[str, Any]) -> str:
    return f"now{_on(start)}" if start["startsNow"] else in_this_zone(start["estimatedStart"])
