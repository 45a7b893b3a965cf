"""The whole system as ``resolute up`` starts it, in a folder of its own; never left behind."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from deploy.local import system
from deploy.local.configuration import certificates, plan
from deploy.local.layout import Layout, Options
from deploy.local.supervision import processes
from tests.harness.client import Client
from tests.harness.installed_client import client_python
from tests.harness.no_tls import NO_TLS
from tests.harness.processes import REPOSITORY
from tests.harness.waiting import wait_until

_CLEAN_UP = """
import shutil, sys
from deploy import cli
folder = sys.argv[1]
sys.stdin.read()
try:
    cli.main(["--state", f"{folder}/state", "reset", "--yes"])
finally:
    shutil.rmtree(folder, ignore_errors=True)
"""
"""Waits for the end of whoever started it, even by ``kill -9``."""


@dataclass(frozen=True)
class WholeSystem:
    layout: Layout
    options: Options
    home: Path
    """For homes of clients."""

    @property
    def url(self) -> str:
        return self.options.master_url

    def det(self, name: str = "client", *, forked: bool = False) -> Client:
        environment = certificates.for_clients(self.options)
        return Client(self.url, self.home / name, env=environment, forked=forked)

    def token(self, username: str = "determined", password: str = "") -> str:
        body = {"username": username, "password": password}
        answer = httpx.post(f"{self.url}/api/v1/auth/login", json=body, timeout=30, verify=self._verify)
        return str(answer.raise_for_status().json()["token"])

    def http(self) -> httpx.Client:
        """A client that is logged in as ``determined``."""
        headers = {"Authorization": f"Bearer {self.token()}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, verify=self._verify)

    @property
    def _verify(self) -> ssl.SSLContext:
        return certificates.trust(self.options) or NO_TLS

    def pids(self) -> dict[str, int]:
        found = {name: processes.find(self.layout, name) for name in plan.process_names(self.layout)}
        return {name: process.pid for name, process in found.items() if process is not None}

    def kill(self, name: str) -> int:
        """``kill -9``; returns the process id that was killed, once it is gone."""
        pid = self.pids()[name]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: self.pids().get(name) != pid, what=f"{name} is killed")
        return pid

    def wait_until_ready(self) -> None:
        system.wait_until_ready(self.layout, self.options, set())

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        """Rows of the database, which tests may look into but not change unless they say so."""

        async def fetch() -> list[dict[str, Any]]:
            url = plan.postgres(self.layout, self.options).url().replace("+asyncpg", "")
            connection = await asyncpg.connect(url)
            try:
                return [dict(row) for row in await connection.fetch(query, *values)]
            finally:
                await connection.close()

        return asyncio.run(fetch())


def arguments(**changes: Any) -> argparse.Namespace:
    """What ``resolute up`` gets from the command line: a free port, one scheduler, tasks run by the client's Python."""
    chosen = {
        "host": "127.0.0.1",
        "port": 0,
        "slots": None,
        "python": str(client_python()),
        "config": None,
        "standby": "no",
    }
    return argparse.Namespace(**(chosen | changes))


@contextmanager
def state_folder() -> Iterator[Path]:
    """A folder for a system, cleaned up with everything that runs in it, however the tests end.

    Not in ``/tmp``, where each task has files of its own, nor in a folder that PostgreSQL's user may not enter.
    """
    folder = Path(tempfile.mkdtemp(prefix="resolute-e2e-", dir="/var/tmp"))
    folder.chmod(0o755)
    cleaner = subprocess.Popen(
        [sys.executable, "-c", _CLEAN_UP, str(folder)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield folder / "state"
    finally:
        assert cleaner.stdin is not None
        cleaner.stdin.close()
        # Ending tasks of a cluster may take a minute, and then there is the rest.
        assert cleaner.wait(timeout=200) == 0, "`resolute reset` failed"


@contextmanager
def running_system(**changes: Any) -> Iterator[WholeSystem]:
    """A system that is ready; ``changes`` are options of ``resolute up``, such as ``slots=8``."""
    with state_folder() as state:
        layout = Layout(state)
        with ThreadPoolExecutor(1) as aside:  # it has an event loop, and so may the test
            options = aside.submit(system.start, layout, arguments(**changes)).result()
        yield WholeSystem(layout, options, state.parent / "homes")
