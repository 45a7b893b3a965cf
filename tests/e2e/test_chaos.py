"""Every process of the control plane is killed while a search runs, and nobody who trains or looks at it can tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from deploy.local.configuration import plan
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem, running_system
from tests.programs import submit

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(600)]

CONCURRENT = 4
TRIALS = 6
PROGRESS = 5
"""Steps that every trial does between two kills, so that each kill hits all of them in their training loop."""
VICTIMS = ("api", "scheduler", "launcher", "logs", "nats", "postgres")


@pytest.fixture(scope="module")
def system() -> Iterator[WholeSystem]:
    """Not the shared one: here services are killed."""
    with running_system(slots=CONCURRENT) as started:
        yield started


@pytest.fixture(scope="module")
def look(system: WholeSystem) -> Iterator[Looking]:
    with system.http() as http:
        yield Looking(http)


def last_steps(look: Looking, experiment: int) -> dict[int, tuple[int, int]]:
    """Trial -> last step in its metrics, and in its log; empty while nobody answers."""
    try:
        return {
            trial["id"]: (max(look.steps(trial["id"]), default=0), last_printed(look.printed(trial["id"])))
            for trial in look.trials(experiment)
        }
    except httpx.HTTPError:
        return {}


def last_printed(lines: list[str]) -> int:
    return max((int(line.split()[1]) for line in lines if line.startswith("step ")), default=0)


def wait_for_progress(look: Looking, experiment: int, *, after: str) -> None:
    """Every trial goes on by PROGRESS steps, seen in its metrics and in its log."""
    before = wait_until(lambda: last_steps(look, experiment), timeout_s=60, what=f"the api answers after {after}")
    assert len(before) == CONCURRENT

    def moved() -> bool:
        now = last_steps(look, experiment)
        return bool(now) and all(
            now[trial][kind] >= steps[kind] + PROGRESS for trial, steps in before.items() for kind in (0, 1)
        )

    wait_until(moved, timeout_s=120, every_s=0.2, what=f"every trial goes on after {after}")


def test_a_search_survives_the_death_of_every_process(system: WholeSystem, look: Looking) -> None:
    assert set(VICTIMS) == set(plan.PROCESSES)
    experiment = submit(
        system.det(),
        "steps.py",
        hyperparameters={"steps": 0, "pause_s": 0.1, "x": {"type": "double", "minval": 0, "maxval": 1}},
        searcher={"name": "random", "metric": "loss", "max_trials": TRIALS, "max_concurrent_trials": CONCURRENT},
    )
    wait_until(lambda: len(look.trials(experiment)) == CONCURRENT)
    wait_for_progress(look, experiment, after="the start")
    for victim in VICTIMS:
        killed = system.kill(victim)
        wait_until(lambda: system.pids().get(victim) not in (None, killed), what=f"{victim} is started again")  # noqa: B023
        wait_for_progress(look, experiment, after=f"the death of {victim}")

    # The trials end, and new ones begin, while those who should notice are away.
    for victim in ("launcher", "scheduler", "logs"):
        system.kill(victim)
    (system.layout.checkpoints / "finish").touch()
    system.wait_until_ready()
    look.wait(experiment)

    trials = look.trials(experiment)
    assert len(trials) == TRIALS
    for trial in trials:
        ident, steps = trial["id"], trial["totalBatchesProcessed"]
        assert (trial["state"], trial["restarts"]) == ("STATE_COMPLETED", 0)
        assert steps > PROGRESS * len(VICTIMS) or trial in trials[CONCURRENT:]
        assert look.steps(ident) == list(range(1, steps + 1))
        assert look.steps(ident, "validation") == [steps]
        # The log service was away when it ended: its last lines may come after its state.
        last = f"done after step {steps}"
        wait_until(lambda: last in look.printed(ident), what=f"the log of trial {ident} is complete")  # noqa: B023
        printed = look.printed(ident)
        assert len([line for line in printed if line.startswith(f"trial {ident} run 1 seed ")]) == 1
        said = [line for line in printed if line.startswith(("step ", "resumed ", "asked ", "done "))]
        assert said == [*(f"step {number}" for number in range(1, steps + 1)), last]
    rows = system.rows(
        "SELECT run_id, count(*) AS allocations FROM trials JOIN trial_tasks ON trial_id = trials.id"
        " JOIN allocations USING (task_id) WHERE experiment_id = $1 GROUP BY trials.id",
        experiment,
    )
    assert rows == [{"run_id": 1, "allocations": 1}] * TRIALS


PAUSED, ACTIVE, CANCELED = (f"GENERIC_TASK_STATE_{state}" for state in ("PAUSED", "ACTIVE", "CANCELED"))


def test_a_generic_task_is_what_was_asked_last_whoever_dies_meanwhile(system: WholeSystem) -> None:
    """Each process is killed right after a pause was asked for, and again right after it was taken back."""
    program = "echo this is $DET_ALLOCATION_ID; while true; do sleep 0.1; done"
    config = f"{{entrypoint: '{program}', resources: {{slots: 0}}}}"
    with system.http() as http:
        reply = http.post("/api/v1/generic-tasks", json={"config": config}).raise_for_status()
        task: str = reply.json()["taskId"]

        def seen() -> dict[str, Any]:
            try:
                return dict(http.get(f"/api/v1/tasks/{task}").raise_for_status().json()["task"])
            except httpx.HTTPError:
                return {}

        def becomes(state: str, *, runs: int) -> None:
            """In that state, after as many allocations, of which the last one runs unless it is at rest."""

            def look() -> bool:
                now = seen()
                if now.get("taskState") != state or len(now["allocations"]) != runs:
                    return False
                running = now["allocations"][0]["state"] == "STATE_RUNNING"
                return running if state == ACTIVE else "endTime" in now and not running

            wait_until(look, timeout_s=60, every_s=0.2, what=f"{state} after {runs} runs")

        becomes(ACTIVE, runs=1)
        for runs, victim in enumerate(VICTIMS, start=1):
            for what, state, after in (("pause", PAUSED, runs), ("unpause", ACTIVE, runs + 1)):
                http.post(f"/api/v1/tasks/{task}/{what}").raise_for_status()
                killed = system.kill(victim)
                wait_until(lambda: system.pids().get(victim) not in (None, killed), what=f"{victim} is back")  # noqa: B023
                becomes(state, runs=after)
        http.post(f"/api/v1/tasks/{task}/kill", json={"taskId": task}).raise_for_status()
        system.kill("scheduler")
        becomes(CANCELED, runs=len(VICTIMS) + 1)
    rows = system.rows("SELECT exit_processed, exit_error FROM allocations WHERE task_id = $1", task)
    assert rows == [{"exit_processed": True, "exit_error": None}] * (len(VICTIMS) + 1)
