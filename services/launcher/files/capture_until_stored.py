"""Runs a task as ``capture.py`` does, and ends only when the log intake has stored everything that was printed.

For pods with fluent-bit beside the task: it is asked to end when this container has ended, and stops reading at once
(docs/reference/logs.md 13.11), so nothing may be left to read by then. Standard library of Python 3.8 only. First
arguments: ``--intake <url> --outage-wait-s <seconds>``; the others are those of ``capture.py``, whose exit code is
returned.

* After the task the last lines get ``DET_LOG_WAIT_TIME`` seconds (30 when it is not set) while the intake answers, and
  ``--outage-wait-s`` while it cannot be reached, which ends when the container is asked to end or another task
  waits for its slots.
* What is not known to be stored by then is told to the launcher, which has the log say so.
* With ``--sidecar-ends-with-task`` a SIGTERM goes to fluent-bit as well: what it does not read any more is delivered
  from here by ``ship.py``.
* fluent-bit deletes nothing, so with ``--when-full stored`` files go when the intake has all of them, and not before.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
ENDS_WITH_TASK = "--sidecar-ends-with-task"


def deliver_rest(url: str, directory: str, stored: dict[str, int], patience: Any) -> bool:
    """Whether everything that the intake has not stored was delivered from here while there was patience."""
    ship_beside = importlib.import_module("capture_and_ship")
    state = os.path.join(directory, ".ship")
    os.makedirs(state, mode=0o700, exist_ok=True)
    with open(os.path.join(state, "position"), "w") as file:
        for stream, number in stored.items():
            file.write(f"{stream} {segment_of(directory, stream, number)} 0 0\n")
    shipped: str = ship_beside.start_shipper(url, directory)
    is_shipped: bool = ship_beside.wait_until_shipped(shipped, patience.left_s)
    return is_shipped


def segment_of(directory: str, stream: str, number: int) -> int:
    """The segment in which the line ``number`` is, or will be."""
    found = 0
    names = (name.split(".") for name in os.listdir(directory) if name.startswith(stream + "."))
    for segment in sorted(int(parts[1]) for parts in names):
        with open(os.path.join(directory, f"{stream}.{segment}.log"), "rb") as file:
            first = file.readline().split(b" ", 2)
        if len(first) == 3 and int(first[1]) <= number:
            found = segment
    return found


def main(args: list[str]) -> int:
    if args[:1] != ["--intake"] or args[2:3] != ["--outage-wait-s"] or "--dir" not in args:
        sys.exit("capture_until_stored: --intake, --outage-wait-s and --dir are required")
    url, outage_wait_s, flags = args[1], float(args[3]), args[4:]
    ends_with_task = flags[:1] == [ENDS_WITH_TASK]
    sys.path.insert(0, HERE)
    capture = importlib.import_module("capture")
    child = capture.Child()
    directory = flags[flags.index("--dir") + 1]
    backlog = capture.Backlog(directory)

    def progress() -> Any:
        return importlib.import_module("log_progress").LogProgress.of_this_pod(url)

    def look_at_backlog() -> bool:
        backlog.look()
        return bool(backlog.holds)

    flags = flags[1:] if ends_with_task else flags
    exit_code: int = capture.main(flags, lambda: progress().stored(), child, backlog)
    is_safe = False
    if not (ends_with_task and child.was_asked_to_end):
        is_wanted = importlib.import_module("log_progress").SlotsWanted()
        patience = capture.Patience(
            capture.log_wait_s(), outage_wait_s, lambda: child.was_asked_to_end or bool(is_wanted())
        )
        is_safe = progress().wait_until_complete(patience.left_s, look_at_backlog)
    if not is_safe and ends_with_task and child.was_asked_to_end:
        backlog.release_all()
        patience = capture.Patience(capture.log_wait_s(), 0.0, lambda: True)
        is_safe = deliver_rest(url, directory, progress().stored(), patience)
    if not is_safe:
        backlog.release_all()
        capture.tell_undelivered(backlog.streams)
        sys.stderr.write("capture: not everything that was printed is known to be stored\n")
    return exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
