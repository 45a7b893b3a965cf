"""Why a job waits, when it starts and what helps: each answered by one command, before and after submitting, as
docs/scheduling.md has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.operations.check import REFUSED, STARTS, WAITS
from tests.harness.resolute import Resolute
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem

CONFIG = """
name: sleeper
entrypoint: sleep 600
resources: {{slots_per_trial: {slots}}}
searcher: {{name: single, metric: loss}}
max_restarts: 0
{more}
"""


@pytest.fixture
def http(whole_system: WholeSystem) -> Iterator[httpx.Client]:
    with whole_system.http() as client:
        yield client


def submit(http: httpx.Client, config: str) -> httpx.Response:
    return http.post("/api/v1/experiments", json={"config": config, "activate": True})


def test_what_was_checked_is_what_happens(whole_system: WholeSystem, http: httpx.Client, tmp_path: Path) -> None:
    run, master = Resolute(whole_system.layout.root), ("--master", whole_system.url)
    file = tmp_path / "experiment.yaml"

    def check(code: int, *, slots: int, more: str = "") -> dict[str, Any]:
        file.write_text(CONFIG.format(slots=slots, more=more))
        found: dict[str, Any] = json.loads(run("check", str(file), str(tmp_path), "--json", *master, code=code))
        return found

    def ended(experiment: int) -> bool:
        state: str = http.get(f"/api/v1/experiments/{experiment}").json()["experiment"]["state"]
        return state == "STATE_CANCELED"

    whole = whole_system.options.slots
    submitted: list[int] = []
    count = len(whole_system.rows("select id from experiments"))
    held = "select 1 from allocations where released_at is null"
    wait_until(lambda: not whole_system.rows(held), what="tests before this one have left")
    try:
        free = check(STARTS, slots=whole)
        assert (free["start"]["slots"], free["username"], free["sooner"]) == (whole, "determined", [])
        assert len(whole_system.rows("select id from experiments")) == count, "nothing is stored"
        submitted.append(submit(http, file.read_text()).raise_for_status().json()["experiment"]["id"])
        holds = f"select 1 from allocations where task_id like '{submitted[0]}.%' and assigned_at is not null"
        wait_until(lambda: whole_system.rows(holds), what="it has its slots")

        command = tmp_path / "command.yaml"
        command.write_text(f"entrypoint: [sleep, '600']\nresources: {{slots: {whole}}}\n")
        asked = json.loads(run("check", "--task", "command", str(command), "--json", *master, code=WAITS))
        assert (asked["start"]["reasonCode"], asked["trials"]) == ("no_room", 0)
        assert "it asks for" in run("check", "--task", "command", str(command), *master, code=WAITS)

        behind = check(WAITS, slots=whole)
        assert behind["start"]["reasonCode"] == "no_room"
        assert behind["start"]["estimatedStart"] is not None
        submitted.append(submit(http, file.read_text()).raise_for_status().json()["experiment"]["id"])
        (waiting,) = http.get("/api/v1/resolute/waiting", params={"experimentId": submitted[-1]}).json()["waiting"]
        for subject in (str(submitted[-1]), waiting["jobId"], waiting["taskId"]):
            said = run("why", subject, *master)
            assert f"{whole} slots of pool default" in said
            assert "What helps: fewer slots" in said
            assert "expected to end at" in said, "it is estimated when somebody asks"
        assert "Nothing of" in run("why", str(submitted[0]), *master, code=3)

        refused = check(REFUSED, slots=whole, more="nonsense: 3")
        assert "nonsense" in refused["refused"]
        assert submit(http, file.read_text()).status_code == 400
        too_large = check(REFUSED, slots=whole + 1)
        assert "exceeds cluster capacity" in too_large["refused"]
        assert submit(http, file.read_text()).status_code == 400
        file.write_text(CONFIG.format(slots=whole, more=""))
        assert "Expected start: " in run("check", str(file), *master, code=WAITS)
        assert "is no folder" in run("check", str(file), str(tmp_path / "none"), *master, code=1)
        assert "does not answer" in run("check", str(file), "--master", "http://127.0.0.1:1", code=1)
    finally:
        for experiment in submitted:
            http.post(f"/api/v1/experiments/{experiment}/kill")
        for experiment in submitted:
            wait_until(lambda experiment=experiment: ended(experiment), what=f"{experiment} is gone")
