"""Single runs through the unmodified client and harness: paused and resumed, failing, refusing, seen from inside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.client import Client
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem
from tests.programs import submit


def allocations(system: WholeSystem, experiment: int) -> list[dict[str, Any]]:
    return system.rows(
        "SELECT allocation_id, state, exit_reason, status_code, preempt_acked FROM allocations"
        " JOIN tasks USING (task_id) WHERE experiment_id = $1 AND task_type = 'TRIAL' ORDER BY requested_at",
        experiment,
    )


def runs(system: WholeSystem, experiment: int) -> list[int]:
    return [int(row["allocation_id"].rpartition(".")[2]) for row in allocations(system, experiment)]


@pytest.fixture
def finish(whole_system: WholeSystem) -> Iterator[Path]:
    """The file at which programs without an end come to one."""
    path = whole_system.layout.checkpoints / "finish"
    yield path
    path.unlink(missing_ok=True)


def test_a_run_paused_in_the_middle_does_every_step_once(
    det: Client, look: Looking, whole_system: WholeSystem, finish: Path
) -> None:
    experiment = submit(det, "steps.py", hyperparameters={"steps": 0, "pause_s": 0.05})
    trial = wait_until(lambda: look.trials(experiment))[0]["id"]
    wait_until(lambda: "step 5" in look.printed(trial), what="it trains")
    det("experiment", "pause", str(experiment))
    wait_until(
        lambda: look.state(experiment) == "STATE_PAUSED" and allocations(whole_system, experiment)[0]["exit_reason"],
        what="it has left",
    )
    first = allocations(whole_system, experiment)[0]
    assert first["preempt_acked"]
    assert first["exit_reason"].startswith("allocation preempted after")
    done = look.steps(trial)
    assert done == list(range(1, len(done) + 1))

    det("experiment", "activate", str(experiment))
    wait_until(lambda: f"step {len(done) + 5}" in look.printed(trial), what="it trains on")
    finish.touch()
    look.wait(experiment)
    only = look.trial(experiment)
    steps = only["totalBatchesProcessed"]
    assert (only["id"], only["restarts"]) == (trial, 0)
    assert steps >= len(done) + 5
    assert look.steps(trial) == list(range(1, steps + 1))
    assert look.steps(trial, "validation") == [steps]
    assert runs(whole_system, experiment) == [1, 2]
    printed = look.printed(trial)
    assert [line for line in printed if line.startswith("step ")] == [f"step {n}" for n in range(1, steps + 1)]
    checkpoint = next(line for line in printed if line.startswith("resumed from checkpoint "))
    assert checkpoint.endswith(f" after step {len(done)}")
    assert [line.split()[3] for line in printed if line.startswith("trial ")] == ["1", "2"]


def test_a_failing_trial_is_restarted_and_says_why(det: Client, look: Looking, whole_system: WholeSystem) -> None:
    experiment = submit(det, "echo about to fail; exit 3", max_restarts=1)
    assert det.run("experiment", "wait", "--polling-interval", "1", str(experiment)).code == 1
    look.wait(experiment, "STATE_ERROR")
    trial = look.trial(experiment)
    assert (trial["state"], trial["restarts"]) == ("STATE_ERROR", 1)
    assert runs(whole_system, experiment) == [1, 2]
    assert [row["status_code"] for row in allocations(whole_system, experiment)] == [3, 3]
    crashes = [line for line in look.logs(trial["id"]) if "crashed:" in line["log"]]
    assert len(crashes) == 2
    for line in crashes:
        assert "resources failed with non-zero exit code" in line["log"]
        assert "exit code 3" in line["log"]
        assert line["level"] == "LOG_LEVEL_ERROR"
    assert look.printed(trial["id"]).count("about to fail") == 2


def test_invalid_hyperparameters_end_a_trial_without_a_restart(
    det: Client, look: Looking, whole_system: WholeSystem
) -> None:
    experiment = submit(det, "invalid.py", max_restarts=3)
    look.wait(experiment)
    trial = look.trial(experiment)
    assert (trial["state"], trial["restarts"]) == ("STATE_COMPLETED", 0)
    assert runs(whole_system, experiment) == [1]


def test_a_search_whose_code_refuses_every_point_ends_and_says_why(det: Client, look: Looking) -> None:
    searcher = {"name": "random", "metric": "loss", "max_trials": 1, "max_concurrent_trials": 1}
    experiment = submit(det, "invalid.py", searcher=searcher)
    look.wait(experiment, "STATE_ERROR")
    first, second = look.trials(experiment)
    assert {first["state"], second["state"]} == {"STATE_COMPLETED"}
    said = [line["message"] for line in look.logs(second["id"])]
    assert any("the code refused the hyperparameters of 2 trials in a row" in line for line in said)


def test_cancel_asks_and_kill_does_not(det: Client, look: Looking, whole_system: WholeSystem) -> None:
    endless = {"steps": 100_000, "pause_s": 0.1}
    asked = submit(det, "steps.py", hyperparameters=endless)
    killed = submit(det, "steps.py", hyperparameters=endless)
    for experiment in (asked, killed):
        wait_until(lambda: "step 2" in [line for one in look.trials(experiment) for line in look.printed(one["id"])])  # noqa: B023
    det("experiment", "cancel", str(asked))
    det("experiment", "kill", str(killed))
    look.wait(asked, "STATE_CANCELED")
    look.wait(killed, "STATE_CANCELED")
    assert any("asked to leave" in line for line in look.printed(look.trial(asked)["id"]))
    assert not any("asked to leave" in line for line in look.printed(look.trial(killed)["id"]))
    assert allocations(whole_system, killed)[0]["exit_reason"].startswith("allocation killed after")


def test_tasks_that_run_at_the_same_time_have_places_of_their_own(det: Client, look: Looking) -> None:
    first, second = submit(det, "place.py"), submit(det, "place.py")
    for experiment in (first, second):
        look.wait(experiment)
        trial = look.trial(experiment)["id"]
        printed = look.printed(trial)
        assert f"trial {trial} reads {trial} and {trial}" in printed
        place = next(line for line in printed if line.startswith("in /run/determined/workdir with "))
        assert {"info", "mine", "train", "workdir"} <= set(place.split())
        assert "task type TRIAL, slots [0]" in printed


def test_the_token_of_a_task_ends_with_its_allocation(det: Client, look: Looking, whole_system: WholeSystem) -> None:
    experiment = submit(det, "echo $DET_SESSION_TOKEN $DET_USER_TOKEN", resources={"slots_per_trial": 0})
    look.wait(experiment)
    allocation_token, user_token = look.printed(look.trial(experiment)["id"])[-1].split()
    for header, token in (("Grpc-Metadata-x-allocation-token", allocation_token), ("Authorization", user_token)):
        response = httpx.get(f"{whole_system.url}/api/v1/me", headers={header: f"Bearer {token}"}, timeout=30)
        assert (response.status_code, response.json()["error"]["error"]) == (401, "invalid credentials")


@pytest.mark.parametrize(
    ("host_path", "container_path"),
    [("/nowhere/at/all", "/data"), ("/etc", "/run/determined")],
    ids=["of nothing", "over ours"],
)
def test_a_bind_mount_that_cannot_be_made_ends_in_error_and_says_why(
    det: Client, look: Looking, host_path: str, container_path: str
) -> None:
    mount = {"host_path": host_path, "container_path": container_path}
    experiment = submit(det, "true", bind_mounts=[mount], max_restarts=1)
    look.wait(experiment, "STATE_ERROR")
    assert look.trial(experiment)["restarts"] == 1
    reason = "crashed: task failed without an associated exit code"
    said = det("experiment", "logs", str(experiment))
    assert said.count(reason) == 2
    described = det("experiment", "describe", str(experiment))
    assert "trial exceeded max restarts" in described
    if container_path == "/data":
        assert host_path in said
        assert host_path in described

    # Nothing of it was ever stored, so nothing that needs the same mounts has to delete it.
    det("experiment", "delete", str(experiment), "--yes")
    wait_until(lambda: is_gone(look, experiment), what="it is deleted")


def is_gone(look: Looking, experiment: int) -> bool:
    try:
        look.state(experiment)
    except httpx.HTTPStatusError as error:
        return error.response.status_code == 404
    return False
