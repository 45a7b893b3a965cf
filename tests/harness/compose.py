"""The system of ``docker-compose.yml``, with servers from wheels, as a Compose project of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any, Final

import pytest

from tests.harness.processes import REPOSITORY

BASE_VARIABLE: Final = "RESOLUTE_TEST_BASE_IMAGE"
BASES: Final = ("python:3.13-slim", "local/python:3.11")
"""What images may begin with, best first: the usual one, and what `tests/cluster/kube/cluster images` makes."""
TAG: Final = "test"
_KILL: Final = "import os, sys; os.kill(int(sys.argv[1]), 9)"


def base_image() -> str:
    """The image to build from. Skips the test where it or Docker is missing."""
    if shutil.which("docker") is None:
        pytest.skip("needs Docker: apt-get install docker.io")
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode != 0:
        pytest.skip(
            "needs a Docker engine that answers: `KUBE_VERSION=1.20 tests/cluster/kube/cluster images` starts it"
        )
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode != 0:
        pytest.skip(
            "needs Compose: `go install github.com/docker/compose/v2/cmd@v2.29.7`, and the program `cmd` that it makes "
            "moved to ~/.docker/cli-plugins/docker-compose"
        )
    if BASE_VARIABLE in os.environ:
        return os.environ[BASE_VARIABLE]
    for base in BASES:
        if subprocess.run(["docker", "image", "inspect", base], capture_output=True, check=False).returncode == 0:
            return base
    pytest.skip(
        f"needs an image to begin with: docker pull {BASES[0]}, or without a registry "
        "KUBE_VERSION=1.20 tests/cluster/kube/cluster images"
    )


class ComposeProject:
    """One project on a free port, from images with a tag of their own."""

    def __init__(self, name: str, base: str) -> None:
        self.name = name
        self._files = ("-f", "docker-compose.yml", "-f", "docker-compose.wheels.yml")
        self._environment = {
            **os.environ,
            "COMPOSE_PROJECT_NAME": name,
            "RESOLUTE_BASE_IMAGE": base,
            "RESOLUTE_VERSION": TAG,
            "RESOLUTE_PORT": "0",
            "RESOLUTE_SLOTS": "2",
        }

    def __call__(self, *arguments: str) -> str:
        """What ``docker compose`` printed. It must succeed."""
        return self._docker("compose", *self._files, *arguments)

    @property
    def master_url(self) -> str:
        return f"http://{self('port', 'api', '8080').strip()}"

    @property
    def password(self) -> str:
        """Of admin and determined."""
        return self("exec", "-T", "api", "cat", "/etc/resolute/secrets/admin/password").strip()

    def services(self) -> tuple[str, ...]:
        """Those that run on."""
        return tuple(self("ps", "--services", "--status", "running").split())

    def state(self, service: str) -> dict[str, Any]:
        """``State`` of its container, with ``RestartCount``."""
        shown = json.loads(self._docker("inspect", self("ps", "--all", "--quiet", service).strip()))[0]
        return {**shown["State"], "RestartCount": shown["RestartCount"]}

    def is_healthy(self, service: str) -> bool:
        state = self.state(service)
        return bool(state["Running"]) and state["Health"]["Status"] == "healthy"

    def kill(self, service: str) -> None:
        """``kill -9`` from outside: what Docker itself was asked to kill stays down."""
        pid = str(self.state(service)["Pid"])
        tools = f"resolute-tools:{TAG}"
        self._docker("run", "--rm", "--pid=host", "--user=0:0", tools, "python", "-c", _KILL, pid)

    def left(self) -> list[str]:
        """Containers, volumes and networks that there are of it."""
        label = f"label=com.docker.compose.project={self.name}"
        found = [
            self._docker("ps", "--all", "--quiet", "--filter", label),
            self._docker("volume", "ls", "--quiet", "--filter", label),
            self._docker("network", "ls", "--quiet", "--filter", label),
        ]
        return " ".join(found).split()

    def _docker(self, *arguments: str) -> str:
        done = subprocess.run(
            ["docker", *arguments],
            cwd=REPOSITORY,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"docker {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stdout
