"""A version of the api, as its checkout has it, on a copy of a database that a dump holds."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from deploy.local.servers.postgres import SUPERUSER, TEST_SETTINGS, find_postgres_bin
from deploy.local.servers.process import ChildProcess
from libs.db.connecting.settings import asyncpg_url
from tests.golden.answers import OLD
from tests.harness import NatsServer, PostgresServer

_READY_S: Final = 120
_CLUSTER: Final = "cluster_name: golden\nresource_manager: {type: process}\n"


@dataclass(frozen=True)
class Version:
    """A running api; ``database_url`` is that of its copy."""

    url: str
    database_url: str

    def token(self, username: str) -> str:
        body = {"username": username, "password": ""}
        answer = httpx.post(f"{self.url}/api/v1/auth/login", json=body, timeout=30)
        return str(answer.raise_for_status().json()["token"])


@contextmanager
def running(checkout: Path, dump: Path, folder: Path) -> Iterator[Version]:
    """The api of ``checkout`` with servers of its own, whose start brings a copy of the database to its schema.

    ``folder`` has to be one that PostgreSQL's user may enter. Nothing was ever said on the bus.
    """
    postgres = PostgresServer(folder / "postgres", settings=TEST_SETTINGS, dies_with_parent=True)
    bus = NatsServer(folder / "bus", dies_with_parent=True)
    try:
        postgres.start()
        bus.start()
        url = postgres.url()
        restore = [str(find_postgres_bin() / "pg_restore"), "--no-owner", "--exit-on-error"]
        subprocess.run([*restore, f"--dbname={asyncpg_url(url)}", str(dump)], check=True)
        for table in ("experiments", "trials"):
            began = f"UPDATE {table} SET start_time = '{OLD}' WHERE end_time IS NULL"
            postgres.execute(began, database=SUPERUSER)
        postgres.execute("ANALYZE", database=SUPERUSER)
        with _api(checkout, folder, url, bus.url) as address:
            yield Version(address, asyncpg_url(url))
    finally:
        bus.stop()
        postgres.stop()


@contextmanager
def _api(checkout: Path, folder: Path, database_url: str, bus_url: str) -> Iterator[str]:
    (folder / "cluster.yaml").write_text(_CLUSTER)
    settings = {
        "http": {"host": "127.0.0.1", "port": 0, "shutdown_grace_s": 1},
        "database": {"url": database_url, "pool_size": 5},
        "bus": {"url": bus_url, "name": "api"},
        "telemetry": {"log_format": "json"},
        "cluster_config": str(folder / "cluster.yaml"),
    }
    (folder / "api.yaml").write_text(json.dumps(settings))
    log = folder / "api.log"
    python = checkout / ".venv" / "bin" / "python"
    argv = (str(python), "-m", "services.api.main", "--settings", str(folder / "api.yaml"))
    process = ChildProcess(argv, log_path=log, cwd=checkout, dies_with_parent=signal.SIGKILL)
    process.start()
    try:
        process.wait_until(lambda: _port(log) is not None, timeout_s=_READY_S)
        yield f"http://127.0.0.1:{_port(log)}"
    finally:
        process.stop(grace_s=10)


def _port(log: Path) -> int | None:
    """The one that the log names, once it does."""
    found = [json.loads(line) for line in log.read_text().splitlines() if '"http.listening"' in line]
    return int(found[-1]["port"]) if found else None
