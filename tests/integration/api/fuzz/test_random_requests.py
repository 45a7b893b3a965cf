"""schemathesis: every operation of the description, with data that fits it and data that does not."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness import ServiceProcess
from tests.harness.api import ApiProcess
from tests.harness.seeds import SEED
from tests.integration.api.fuzz.knowledge import SPARED
from tests.integration.api.fuzz.objects import Objects, changes_of_users, make_objects
from tests.integration.api.world import CLUSTER, World

REPOSITORY = Path(__file__).resolve().parents[4]
SCHEMATHESIS = REPOSITORY / ".venv-fuzz" / "bin" / "schemathesis"
SECONDS = int(os.environ.get("RESOLUTE_FUZZ_SECONDS", "120"))
"""For all requests together; more finds more."""
PATIENCE_S = 30.0
"""With one answer, on a machine that is busy with others."""


@pytest.fixture(scope="module")
def world(world: World) -> World:
    """With webhooks that may be tried on this machine, where nobody listens."""
    path = Path(world.settings["cluster_config"])
    path.write_text(f"{CLUSTER}webhooks: {{allowed_networks: [127.0.0.0/8]}}\n")
    return world


@pytest.fixture(scope="module")
def objects(world: World, api: ApiProcess) -> Objects:
    return make_objects(world, api)


@pytest.fixture(scope="module")
def others(world: World) -> Iterator[list[ServiceProcess]]:
    """The services that work on what the requests leave behind, and must survive it. No launcher: nothing runs."""
    settings = {"database": {"url": world.database_url, "pool_size": 5}, "bus": {"url": world.bus_url}}
    intake = {"intake": {"host": "127.0.0.1", "port": 0}}
    with ExitStack() as stack:
        yield [
            stack.enter_context(_service(world, "scheduler", {**settings, "cluster_config": _cluster(world)})),
            stack.enter_context(_service(world, "logs", {**settings, **intake})),
        ]


def _cluster(world: World) -> str:
    return str(world.settings["cluster_config"])


def _service(world: World, name: str, settings: dict[str, Any]) -> ServiceProcess:
    path = world.directory / f"{name}.yaml"
    path.write_text(json.dumps(settings))
    log = world.directory / f"{name}.log"
    return ServiceProcess(f"services.{name}.main", "--settings", str(path), log_path=log)


@pytest.mark.fuzz
@pytest.mark.timeout(SECONDS + 240)
def test_no_request_fails_the_server(
    world: World, objects: Objects, others: list[ServiceProcess], tmp_path: Path
) -> None:
    with ExitStack() as stack:
        apis = [stack.enter_context(_api(world, authz)) for authz in ("basic", "rbac")]
        runs = [Requests(api.url, objects, tmp_path / str(number)) for number, api in enumerate(apis)]
        for run in runs:
            assert run.returncode() == 0, run.output()
        for api in apis:
            assert "http.unexpected" not in api.process.log()
            me = httpx.get(f"{api.url}/api/v1/me", headers=objects.headers, timeout=PATIENCE_S)
            assert me.status_code == 200, f"{me.status_code} {me.text}, after:\n{changes_of_users(world)}"
            assert me.json()["user"]["id"] == objects.caller
        assert all(other.is_running for other in others)


def _api(world: World, authz: str) -> ApiProcess:
    path = world.directory / f"{authz}.yaml"
    path.write_text(f"{Path(_cluster(world)).read_text()}security: {{authz: {{type: {authz}}}}}\n")
    return world.api(authz, cluster_config=str(path))


class Requests:
    """schemathesis as a process of its own: in threads of one, its library would share what is none of theirs."""

    def __init__(self, url: str, objects: Objects, directory: Path) -> None:
        directory.mkdir()
        self._output = directory / "output"
        (authorization,) = objects.headers.items()
        command = [
            str(SCHEMATHESIS),
            *("run", f"{url}/api/v1/openapi.json"),
            *("--header", ": ".join(authorization)),
            *("--checks", "not_a_server_error"),
            *("--phases", "coverage,fuzzing"),
            *("--mode", "all"),
            *("--seed", os.environ.get("RESOLUTE_TEST_SEED") or str(SEED)),
            *("--generation-database", "none"),
            *("--max-time", str(SECONDS)),
            *("--request-timeout", str(PATIENCE_S)),
            *("--max-redirects", "0"),
            *("--workers", "1"),
            *("--suppress-health-check", "all"),
            *("--warnings", "off"),
            *("--continue-on-failure", "--no-shrink", "--no-color"),
            *(option for one in SPARED for option in ("--exclude-name", one)),
        ]
        env = {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "SCHEMATHESIS_HOOKS": "tests.integration.api.fuzz.hooks",
            "RESOLUTE_FUZZ_WORLD": json.dumps(objects.for_hooks()),
        }
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(command, cwd=directory, env=env, stdout=output, stderr=subprocess.STDOUT)

    def returncode(self) -> int:
        try:
            return self._process.wait(SECONDS + 120)
        finally:
            self._process.kill()

    def output(self) -> str:
        return self._output.read_text()[-30_000:]
