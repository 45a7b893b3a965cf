"""``resolute up | status | down | reset`` on a state folder of their own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Iterator

import httpx
import pytest

from deploy.local.configuration import plan
from tests.harness.certificates import self_signed
from tests.harness.looking import Looking
from tests.harness.resolute import NOT_RUNNING, Resolute
from tests.harness.waiting import wait_until
from tests.harness.whole_system import state_folder
from tests.programs import submit


@pytest.fixture
def resolute() -> Iterator[Resolute]:
    with state_folder() as state:
        yield Resolute(state)


def test_nothing_runs_before_the_first_up(resolute: Resolute) -> None:
    assert "nothing was ever started" in resolute("status", code=NOT_RUNNING)
    assert "nothing was running" in resolute("down")
    assert "nothing to delete" in resolute("reset", "--yes")
    assert "does not have determined==0.38.1" in resolute("up", "--port", "0", "--python", "/usr/bin/env", code=1)


def test_an_initial_password_is_shown_once_and_needed(resolute: Resolute) -> None:
    shown = re.search(r"have the password (\S+)", resolute.up("--passwords", "initial"))
    assert shown is not None
    system = resolute.system()
    for username in ("admin", "determined"):
        assert system.token(username, shown[1])
        with pytest.raises(httpx.HTTPStatusError, match="401"):
            system.token(username)
    assert "have the password" not in resolute.up()


@pytest.mark.slow
def test_tasks_outlive_down_and_are_found_by_the_next_up(resolute: Resolute) -> None:
    assert "ready after" in resolute.up()
    system = resolute.system()
    first = resolute.status()
    assert first["master"] == system.url
    experiment = submit(system.det(), "steps.py", hyperparameters={"steps": 0, "pause_s": 0.1})
    with system.http() as http:
        look = Looking(http)
        trial = wait_until(lambda: look.trials(experiment))[0]["id"]
        wait_until(lambda: "step 2" in look.printed(trial))
    # A second up changes nothing.
    resolute.up()
    assert resolute.status() == first

    assert "1 tasks go on" in resolute("down")
    down = resolute.status(code=NOT_RUNNING)
    assert set(down["services"].values()) == {None}  # type: ignore[attr-defined]
    resolute.up()
    assert resolute.status()["master"] == first["master"]
    (system.layout.checkpoints / "finish").touch()
    with system.http() as http:
        look = Looking(http)
        look.wait(experiment)
        steps = look.trial(experiment)["totalBatchesProcessed"]
        assert look.steps(trial) == list(range(1, steps + 1))
        wait_until(lambda: f"done after step {steps}" in look.printed(trial), what="its log has arrived")
        numbered = [line for line in look.printed(trial) if line.startswith("step ")]
        assert numbered == [f"step {number}" for number in range(1, steps + 1)]
        assert look.trial(experiment)["restarts"] == 0

    (system.layout.checkpoints / "finish").unlink()
    second = submit(system.det(), "steps.py", hyperparameters={"steps": 0, "pause_s": 0.1})
    with system.http() as http:
        look = Looking(http)
        wait_until(lambda: look.state(second) == "STATE_RUNNING")
    assert "ended 1 tasks" in resolute("down", "--tasks")
    resolute("reset", "--yes")
    assert not resolute.state.exists()


@pytest.mark.slow
def test_running_task_is_found_again_after_a_restore_into_new_servers(resolute: Resolute) -> None:
    resolute.up()
    system, file = resolute.system(), str(resolute.state.parent / "backup.tar.gz")
    experiment = submit(system.det(), "steps.py", hyperparameters={"steps": 0, "pause_s": 0.1})
    with system.http() as http:
        look = Looking(http)
        wait_until(lambda: look.state(experiment) == "STATE_RUNNING")
        trial = look.trial(experiment)["id"]
    resolute("backup", file)
    assert "services hold" in resolute("restore", file, code=1)
    resolute("down")
    shutil.rmtree(system.options.postgres_data)
    shutil.rmtree(plan.nats(system.layout, system.options).store_directory)
    resolute.up("--only-servers")
    assert "are restored" in resolute("restore", file)
    resolute("down")
    resolute.up()
    with system.http() as http:
        look = Looking(http)
        known = look.steps(trial)
        wait_until(lambda: len(look.steps(trial)) > len(known), what="the task that went on is found again")
        assert look.trial(experiment)["restarts"] == 0


@pytest.mark.slow
def test_tasks_and_clients_speak_https_where_the_api_does(resolute: Resolute) -> None:
    resolute.state.mkdir()
    # A name that nothing here is reached by.
    pair = self_signed(resolute.state, names=("api.example.com",), addresses=())
    config = resolute.state / "cluster.yaml"
    storage = {"type": "shared_fs", "host_path": str(resolute.state / "checkpoints")}
    tls = {"cert": str(pair.cert), "key": str(pair.key)}
    config.write_text(json.dumps({"security": {"tls": tls}, "checkpoint_storage": storage}))
    assert f"DET_MASTER_CERT_FILE={pair.cert}" in resolute.up("--config", str(config))
    system = resolute.system()
    assert resolute.status()["master"] == system.url
    assert system.url.startswith("https://")
    experiment = submit(system.det(), "steps.py", hyperparameters={"steps": 2, "pause_s": 0})
    with system.http() as http:
        look = Looking(http)
        look.wait(experiment)
        assert "step 2" in look.printed(look.trials(experiment)[0]["id"])


def test_nobody_is_refused_while_the_api_is_started_anew(resolute: Resolute) -> None:
    resolute.up()
    system = resolute.system()
    token = system.token()
    killed = system.kill("api")
    # A single try each, of a client that repeats nothing.
    with system.http() as http:
        assert http.get("/api/v1/me").json()["user"]["username"] == "determined"
    assert system.token() != token
    assert system.pids()["api"] != killed
    # Nobody would ever answer who is stopped for good.
    resolute("down")
    with pytest.raises(httpx.ConnectError):
        system.token()


@pytest.mark.slow
def test_one_service_in_the_foreground_is_handed_back(resolute: Resolute) -> None:
    resolute.up()
    system = resolute.system()
    supervised = system.pids()["scheduler"]
    foreground = resolute.start("up", "--service", "scheduler")
    try:
        wait_until(lambda: system.pids().get("scheduler") not in (None, supervised), what="it was taken over")
        pid = system.pids()["scheduler"]
        experiment = submit(system.det(), "steps.py")
        with system.http() as http:
            Looking(http).wait(experiment)
    finally:
        foreground.send_signal(signal.SIGINT)
        foreground.wait(timeout=60)
    wait_until(lambda: system.pids().get("scheduler") not in (None, pid, supervised), what="the supervisor took over")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    resolute.status()
