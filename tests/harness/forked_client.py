"""The unmodified client, forked for each command from a process that has imported it (``client_forks``)."""

from __future__ import annotations

import functools
import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.harness.installed_client import client_python

_SERVER: Final = Path(__file__).with_name("client_forks.py")


def run_forked(
    arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path, typed: str, timeout_s: float
) -> tuple[int, str, str]:
    """What ``det ARGUMENTS`` ended with, and printed to its two streams."""
    request = {"arguments": arguments, "env": dict(env), "cwd": str(cwd), "timeout_s": int(timeout_s)}
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        stdin.write(typed.encode())
        stdin.seek(0)
        ending, ends = os.pipe()
        streams = [stdin.fileno(), out.fileno(), err.fileno()]
        socket.send_fds(_server(client_python(), env["DET_MASTER"]), [json.dumps(request).encode()], [*streams, ends])
        os.close(ends)
        with open(ending, "rb") as file:
            code = int(file.read())
        out.seek(0)
        err.seek(0)
        return code, out.read().decode(), err.read().decode()


@functools.lru_cache(maxsize=2)
def _server(python: Path, master: str) -> socket.socket:
    """For one master, because the client reads its address when it is imported. Ends when the socket is closed."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONWARNINGS": "ignore", "DET_MASTER": master}
    with its:
        # -P: beside the program there is a folder ``determined`` that is not the client.
        subprocess.Popen([str(python), "-P", str(_SERVER)], stdin=its, env=env)
    return ours
