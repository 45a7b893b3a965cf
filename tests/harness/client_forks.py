"""Forks the client, in the client's own Python: most of the time that a ``det`` takes is imports.

Each message on the socket that is its standard input is a request, with four open files: the three standard streams of
a ``det``, and one that its exit code is written to. Ends when the socket is closed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

import numpy  # noqa: F401  # the client imports it with its first request
from determined.cli.__main__ import main

_LONGEST_REQUEST = 2**17


def serve(requests: socket.socket) -> None:
    """Returns in the processes that are to go on as a ``det``."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    while True:
        message, files, _, _ = socket.recv_fds(requests, _LONGEST_REQUEST, 4)
        if not message:
            sys.exit()
        if os.fork() == 0:
            break
        for file in files:
            os.close(file)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    requests.close()
    *streams, ending = files
    if (child := os.fork()) != 0:
        _, status = os.waitpid(child, 0)
        os.write(ending, str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    os.close(ending)
    _become_det(json.loads(message), streams)


def _become_det(request: dict[str, Any], streams: Sequence[int]) -> None:
    # Without a terminal of its own it reads passwords from where the tests write them.
    os.setsid()
    for number, file in enumerate(streams):
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    signal.alarm(request["timeout_s"])
    sys.argv = ["det", *request["arguments"]]


if __name__ == "__main__":
    serve(socket.socket(fileno=os.dup(0)))
    sys.exit(main(sys.argv[1:]))  # its default is what the arguments were when it was imported
