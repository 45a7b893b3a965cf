"""A whole system of its own for benchmarks, in a folder that is deleted afterwards."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from deploy.local import system
from deploy.local.configuration import plan
from deploy.local.layout import Layout, Options
from deploy.local.leftover_tasks import tasks
from deploy.local.supervision import processes

ROOT = Path(__file__).parents[2]
CLIENT_PYTHON = ROOT / ".venv-client" / "bin" / "python"


@dataclass(frozen=True)
class BenchSystem:
    layout: Layout
    options: Options

    @property
    def database_url(self) -> str:
        return plan.postgres(self.layout, self.options).url().replace("+asyncpg", "")

    @property
    def python(self) -> str:
        return self.options.python

    def pids(self, *, without: tuple[str, ...] = ()) -> dict[str, int]:
        """Process ids by name, the supervisor's too."""
        names = (*plan.process_names(self.layout), processes.SUPERVISOR)
        found = processes.find_all(self.layout, names)
        return {name: process.pid for name, process in found.items() if process and name not in without}

    def log_in(self, username: str = "determined") -> str:
        """Token of a user."""
        body = {"username": username, "password": ""}
        answer = httpx.post(f"{self.options.master_url}/api/v1/auth/login", json=body, timeout=30)
        return str(answer.raise_for_status().json()["token"])


@contextmanager
def running_system(*, slots: int = 2, cluster: str | None = None) -> Iterator[BenchSystem]:
    """``cluster``: text of its configuration, where the usual one will not do."""
    python = os.environ.get("RESOLUTE_TASK_PYTHON") or str(CLIENT_PYTHON)
    # Whoever still ships the last lines of a task may write while its folder is deleted.
    with tempfile.TemporaryDirectory(prefix="resolute-bench-", dir="/var/tmp", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        layout = Layout(Path(folder) / "state")
        config = None
        if cluster is not None:
            config = str(Path(folder) / "cluster.yaml")
            Path(config).write_text(cluster)
        arguments = argparse.Namespace(
            host="127.0.0.1", port=0, slots=slots, python=python, config=config, standby="yes"
        )
        try:
            yield BenchSystem(layout, system.start(layout, arguments))
        finally:
            system.stop(layout)
            tasks.end(layout)
