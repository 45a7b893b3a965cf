"""Runs a task as ``capture.py`` does, and ends only when the log intake has stored everything that was printed.

For pods with fluent-bit beside the task: it is asked to end when this container has ended, and stops reading at once
(spec/logs.md 13.11), so nothing may be left to read by then. Standard library of Python 3.8 only. First argument:
``--intake <url>``; the others are those of ``capture.py``, whose exit code is returned.

* After the task the last lines get ``DET_LOG_WAIT_TIME`` seconds (30 when it is not set).
* fluent-bit deletes nothing, so with ``--when-full stored`` files go when the intake has all of them, and not before.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))


def main(args: list[str]) -> int:
    if args[:1] != ["--intake"]:
        sys.exit("capture_until_stored: --intake is required")
    sys.path.insert(0, HERE)
    capture = importlib.import_module("capture")

    def progress() -> Any:
        return importlib.import_module("log_progress").LogProgress.of_this_pod(args[1])

    exit_code: int = capture.main(args[2:], lambda: progress().stored())
    if not progress().wait_until_complete(capture.log_wait_s()):
        sys.stderr.write("capture: not everything that was printed is known to be stored\n")
    return exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
