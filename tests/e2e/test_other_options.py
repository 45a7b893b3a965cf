"""``resolute up`` with other options on a system that runs applies them or refuses them, and its tasks go on."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest
import yaml

from deploy.local.servers.ports import free_port
from tests.harness.installed_client import client_python
from tests.harness.looking import Looking
from tests.harness.resolute import Resolute
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem, state_folder
from tests.programs import submit

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def resolute() -> Iterator[Resolute]:
    with state_folder() as state:
        yield Resolute(state)


def test_a_task_goes_on_when_what_is_asked_for_holds_or_is_refused(resolute: Resolute) -> None:
    resolute.up()
    system, first = resolute.system(), resolute.status()
    experiment = submit(system.det(), "steps.py", hyperparameters={"steps": 0, "pause_s": 0.1})
    with system.http() as http:
        look = Looking(http)
        wait_until(lambda: look.state(experiment) == "STATE_RUNNING")
        trial = look.trial(experiment)["id"]

    # Its task would not find the api any more.
    assert "1 task runs and would lose the api" in resolute("up", "--port", str(free_port()), code=1)
    # The services of this machine are reached at an address that was chosen with their passwords.
    assert "is chosen at the first start" in resolute("up", "--host", "0.0.0.0", code=1)
    assert "scheduler run: `resolute down`" in resolute("up", "--only-servers", code=1)
    assert resolute.status() == first

    python = resolute.state / "python"
    python.write_text(f'#!/bin/sh\nexec {client_python()} "$@"\n')
    python.chmod(0o755)
    said = resolute("up", "--slots", "4", "--python", str(python))
    assert "starting anew for the interpreter of tasks, slots; tasks go on" in said
    assert slots(system) == 4
    settings = yaml.safe_load((resolute.state / "config" / "launcher.yaml").read_text())
    assert settings["process"]["python"] == str(python)
    assert resolute.status()["master"] == first["master"]
    with system.http() as http:
        look = Looking(http)
        known = look.steps(trial)
        wait_until(lambda: len(look.steps(trial)) > len(known), what="its task goes on")
        assert look.trial(experiment)["restarts"] == 0


def test_what_does_not_work_is_taken_back_and_another_port_is_taken(resolute: Resolute) -> None:
    resolute.up()
    system, first = resolute.system(), resolute.status()
    # A certificate that is none is found when the services are being started anew.
    certificate = resolute.state / "none.pem"
    certificate.write_text("no certificate")
    config = resolute.state / "other.yaml"
    storage = {"type": "shared_fs", "host_path": str(resolute.state / "checkpoints")}
    tls = dict.fromkeys(("cert", "key"), str(certificate))
    config.write_text(json.dumps({"security": {"tls": tls}, "checkpoint_storage": storage}))
    assert "nothing is changed" in resolute("up", "--config", str(config), code=1).lower()
    assert resolute.status()["master"] == first["master"]
    assert slots(system) == 2

    other = str(free_port())
    resolute("up", "--port", other)
    assert resolute.status()["master"] == f"http://127.0.0.1:{other}"
    with pytest.raises(httpx.ConnectError):
        system.token()
    moved = resolute.system()
    pids = moved.pids()
    resolute("up")
    assert moved.pids() == pids, "nothing else was asked for"


def slots(system: WholeSystem) -> int:
    with system.http() as http:
        agents = wait_until(lambda: http.get("/api/v1/agents").json()["agents"])
        return len(agents[0]["slots"])
