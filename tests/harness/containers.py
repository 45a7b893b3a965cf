"""The same servers as containers, for whoever has Docker and sets RESOLUTE_TEST_CONTAINERS=1.

The images are the ones the Helm chart and Compose name, so that the tests can run against those versions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient

from deploy.local.servers.nats import NatsServer
from deploy.local.servers.ports import accepts_connections, free_port

NATS_IMAGE = os.environ.get("RESOLUTE_TEST_NATS_IMAGE", "nats:2.12-alpine")
POSTGRES_IMAGE = os.environ.get("RESOLUTE_TEST_POSTGRES_IMAGE", "postgres:18")


def containers_wanted() -> bool:
    """Whether to use Docker. Raises docker's error when it was asked for and does not answer."""
    if os.environ.get("RESOLUTE_TEST_CONTAINERS") != "1":
        return False
    DockerClient().client.ping()
    return True


class _Container:
    """start, stop, kill and restart with the same port and data, as the embedded servers have them."""

    def __init__(self, container: DockerContainer, port: int, is_ready: Callable[[], bool]) -> None:
        self.port = port
        self._container = container
        self._is_ready = is_ready
        self._created = False

    def start(self) -> None:
        if self._created:
            self._container.get_wrapped_container().start()
        else:
            self._container.start()
            self._created = True
        deadline = time.monotonic() + 60
        while not self._is_ready():
            if time.monotonic() > deadline:
                raise AssertionError(f"container not ready: {self._container.get_logs()!r}")
            time.sleep(0.1)

    def kill(self) -> None:
        self._container.get_wrapped_container().kill()

    def restart(self) -> None:
        self.kill()
        self.start()

    def stop(self) -> None:
        self._container.stop()


class ContainerNats(_Container):
    def __init__(self) -> None:
        port = free_port()
        container = DockerContainer(NATS_IMAGE).with_bind_ports(4222, port)
        # /etc/nats/nats-server.conf of the image has no JetStream; a configuration of our own needs no mounted file.
        container.with_command(
            [
                "sh",
                "-c",
                "printf 'max_payload: 8MB\\njetstream { store_dir: /data }\\n' > /n.conf && nats-server -c /n.conf",
            ]
        )
        super().__init__(container, port, lambda: NatsServer.greets_with_jetstream(port))

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"


class ContainerPostgres(_Container):
    def __init__(self) -> None:
        port = free_port()
        container = (
            DockerContainer(POSTGRES_IMAGE)
            .with_bind_ports(5432, port)
            .with_env("POSTGRES_USER", "resolute")
            .with_env("POSTGRES_HOST_AUTH_METHOD", "trust")
            .with_command("postgres -c fsync=off -c max_connections=200")
        )
        super().__init__(container, port, lambda: accepts_connections(port) and self._says_ready())

    def _says_ready(self) -> bool:
        # The port is Docker's and always open, and the image starts the server twice: only TCP counts.
        return bool(self._container.exec(["pg_isready", "-q", "-h", "127.0.0.1", "-U", "resolute"]).exit_code == 0)

    def url(self, database: str = "resolute") -> str:
        return f"postgresql+asyncpg://resolute@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, *, database: str = "postgres") -> str:
        argv = ["psql", "-U", "resolute", "-d", database, "-v", "ON_ERROR_STOP=1", "-XAtqc", statement]
        result = self._container.exec(argv)
        assert result.exit_code == 0, result.output
        return str(result.output.decode())
