"""nginx in front of a service, as Debian has it. Skips the test where it is not installed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.local.servers.ports import free_port
from deploy.local.servers.process import ChildProcess
from tests.harness.waiting import wait_until

LISTEN = "listen 80;"
_PATHS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@contextmanager
def nginx(directory: Path, server: str) -> Iterator[str]:
    """The address of an nginx with this configuration of its ``http`` block, which has ``listen 80;`` once."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("needs nginx: `apt-get install nginx-light`")
    assert server.count(LISTEN) == 1
    directory.mkdir(parents=True)
    port = free_port()
    paths = "\n".join(f"  {name}_temp_path {directory}/{name};" for name in _PATHS)
    user = "user root;\n" if os.geteuid() == 0 else ""
    (directory / "nginx.conf").write_text(
        f"{user}daemon off;\nmaster_process off;\npid {directory}/nginx.pid;\nevents {{}}\n"
        f"http {{\n  access_log {directory}/access.log;\n{paths}\n"
        f"{server.replace(LISTEN, f'listen 127.0.0.1:{port};')}\n}}\n"
    )
    process = ChildProcess(
        (program, "-e", f"{directory}/error.log", "-c", f"{directory}/nginx.conf"),
        log_path=directory / "nginx.log",
        cwd=directory,
        env=dict(os.environ),
        dies_with_parent=signal.SIGKILL,
    )
    process.start()
    try:
        wait_until(lambda: _listens(port))
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
