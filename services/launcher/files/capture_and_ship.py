"""Runs a task as ``capture.py`` does, with a shipper beside it in the same container; ends when both are done.

For pods without a sidecar. Standard library of Python 3.8 only. First arguments: ``--intake <url> --outage-wait-s
<seconds>``; the others are those of ``capture.py``, whose exit code is returned. Who the pod is comes from its
environment.

* The shipper is started again when it dies, by a shell that costs next to nothing.
* After the task the last lines get ``DET_LOG_WAIT_TIME`` seconds (30 when it is not set) to be delivered while the
  intake answers, and ``--outage-wait-s`` while it cannot be reached, which ends when the container is asked to
  end or another task waits for its slots.
* What is not delivered by then is told to the launcher, which has the log say so.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable

HERE = os.path.dirname(os.path.abspath(__file__))
POLL_S = 0.05


def start_shipper(url: str, directory: str) -> str:
    """Start delivering what is written to ``directory``; returns the path of a file that exists once all is sent."""
    state = os.path.join(directory, ".ship")
    os.makedirs(state, mode=0o700, exist_ok=True)
    shipped = os.path.join(state, "shipped")
    token_file = os.path.join(state, "token")
    with open(os.open(token_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(os.environ["DET_SESSION_TOKEN"])
    wake = os.path.join(directory, "wake")
    if not os.path.exists(wake):
        os.mkfifo(wake, 0o600)
    flags = {
        "--url": url,
        "--dir": directory,
        "--state": state,
        "--token-file": token_file,
        "--allocation": os.environ["DET_ALLOCATION_ID"],
        "--pod": os.environ.get("DET_CONTAINER_ID", ""),
        "--node": os.environ.get("DET_AGENT_ID", ""),
        "--restart": "0",
        "--ca-file": os.environ.get("DET_MASTER_CERT_FILE", ""),
        "--server-name": os.environ.get("DET_MASTER_CERT_NAME", ""),
    }
    command = [sys.executable, "-I", "-S", os.path.join(HERE, "ship.py"), "--delete-shipped"]
    for flag in flags.items():
        command += flag
    subprocess.Popen(  # noqa: S603  our own script
        ["/bin/sh", "-c", 'until [ -e "$0" ]; do "$@"; sleep 1; done', shipped, *command],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    return shipped


def wait_until_shipped(shipped: str, left_s: Callable[..., float]) -> bool:
    """Whether everything was sent while there was patience, which ``left_s`` says, told whether the intake is away."""
    away = os.path.join(os.path.dirname(shipped), "away")
    while not os.path.exists(shipped):
        if left_s(is_away=os.path.exists(away)) <= 0:
            return False
        time.sleep(POLL_S)
    return True


def main(args: list[str]) -> int:
    if args[:1] != ["--intake"] or args[2:3] != ["--outage-wait-s"] or "--dir" not in args:
        sys.exit("capture_and_ship: --intake, --outage-wait-s and --dir are required")
    directory = args[args.index("--dir") + 1]
    shipped = start_shipper(args[1], directory)
    sys.path.insert(0, HERE)
    capture = importlib.import_module("capture")
    child = capture.Child()
    backlog = capture.Backlog(directory)
    exit_code: int = capture.main(args[4:], None, child, backlog)
    if os.path.exists(shipped):
        return exit_code
    is_wanted = importlib.import_module("log_progress").SlotsWanted()
    patience = capture.Patience(
        capture.log_wait_s(), float(args[3]), lambda: child.was_asked_to_end or bool(is_wanted())
    )
    if not wait_until_shipped(shipped, patience.left_s):
        capture.tell_undelivered(backlog.streams)
    return exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
