"""The api as a process, and plain requests to it."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from tests.harness.no_tls import NO_TLS
from tests.harness.processes import ServiceProcess


class ApiProcess:
    """``python -m services.api.main`` on a free port, ready when it is entered.

    settings     as in its settings file, without ``http``, ``database`` and ``bus``
    certificate  that it is configured to have, when it is to be spoken to over HTTPS
    """

    def __init__(
        self,
        directory: Path,
        *,
        database_url: str,
        bus_url: str,
        settings: Mapping[str, Any] | None = None,
        certificate: Path | None = None,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._log_path = directory / "api.log"
        content = {
            "http": {"host": "127.0.0.1", "port": 0, "shutdown_grace_s": 1},
            "database": {"url": database_url, "pool_size": 5},
            "bus": {"url": bus_url, "name": "api"},
            "telemetry": {"log_format": "json"},
            **(settings or {}),
        }
        settings_path = directory / "api.yaml"
        settings_path.write_text(json.dumps(content))
        self._process = ServiceProcess(
            "services.api.main",
            "--settings",
            str(settings_path),
            log_path=self._log_path,
            is_ready=self._is_ready,
            ready_timeout_s=60,
        )
        self._skip_log = 0
        self._scheme = "https" if certificate else "http"
        self._verify = ssl.create_default_context(cafile=certificate) if certificate else NO_TLS
        self.url = ""

    @property
    def process(self) -> ServiceProcess:
        return self._process

    def start(self) -> None:
        self._skip_log = self._log_path.stat().st_size if self._log_path.exists() else 0
        self._process.start()

    def restart(self) -> None:
        """``kill -9``, and start again, on another port."""
        self._process.kill()
        self.start()

    def token(self, username: str = "admin", password: str = "") -> str:
        """A new login of a user."""
        with httpx.Client(base_url=self.url, timeout=30, verify=self._verify) as client:
            body = {"username": username, "password": password, "isHashed": False}
            reply = client.post("/api/v1/auth/login", json=body)
            assert reply.status_code == 200, reply.text
            token: str = reply.json()["token"]
            return token

    def client(self, username: str = "admin", password: str = "") -> httpx.Client:
        """Requests on behalf of a user; close it."""
        headers = {"Authorization": f"Bearer {self.token(username, password)}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30, verify=self._verify)

    def _is_ready(self) -> bool:
        if (port := self._port()) is None:
            return False
        self.url = f"{self._scheme}://127.0.0.1:{port}"
        try:
            return httpx.get(f"{self.url}/health", timeout=1, verify=self._verify).is_success
        except httpx.TransportError:
            return False

    def _port(self) -> int | None:
        """The port that the last start has logged."""
        if not self._log_path.exists():
            return None
        with self._log_path.open("rb") as file:
            file.seek(self._skip_log, os.SEEK_SET)
            for line in file:
                if b"http.listening" in line:
                    return int(json.loads(line)["port"])
        return None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.stop()
