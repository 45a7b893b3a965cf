"""Searches: hyperparameters as the seed has them, and the example that a new user tries first."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.harness.client import Client
from tests.harness.looking import Looking
from tests.harness.whole_system import WholeSystem
from tests.programs import created, submit

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
GOAL = 0.95


def drawn(space: dict[str, Any], seed: int, count: int) -> list[dict[str, Any]]:
    """What a random search draws, by numpy's own stream: hyperparameters by name, request id, trial seed."""
    stream = np.random.RandomState(seed)

    def sample(parameter: Any) -> Any:
        match parameter:
            case {"type": "int"}:
                return int(stream.randint(parameter["minval"], parameter["maxval"] + 1))
            case {"type": "double"}:
                return stream.uniform(parameter["minval"], parameter["maxval"])
            case {"type": "log"}:
                return parameter["base"] ** stream.uniform(parameter["minval"], parameter["maxval"])
            case {"type": "categorical"}:
                return parameter["vals"][stream.randint(0, len(parameter["vals"]))]
        return parameter

    trials = []
    for _ in range(count):
        hparams = {name: sample(space[name]) for name in sorted(space)}
        request = uuid.UUID(bytes=stream.bytes(16), version=4)
        trials.append({"hparams": hparams, "request_id": str(request), "seed": int(stream.randint(0, 2**31))})
    return trials


def created_trials(system: WholeSystem, experiment: int) -> dict[str, tuple[int, int]]:
    """Request id -> trial, seed."""
    rows = system.rows("SELECT request_id, id, seed FROM trials WHERE experiment_id = $1", experiment)
    return {row["request_id"]: (row["id"], row["seed"]) for row in rows}


def test_a_random_search_is_numpys_stream_of_its_seed(det: Client, look: Looking, whole_system: WholeSystem) -> None:
    config = yaml.safe_load((DIGITS / "random.yaml").read_text())
    space = {**config["hyperparameters"], "steps": 2, "pause_s": 0}
    searcher = {**config["searcher"], "metric": "loss", "smaller_is_better": True}
    experiment = submit(
        det, "steps.py", hyperparameters=space, searcher=searcher, reproducibility={"experiment_seed": 1234}
    )
    look.wait(experiment)
    expected = drawn(space, 1234, searcher["max_trials"])
    trials = created_trials(whole_system, experiment)
    hparams = {trial["id"]: trial["hparams"] for trial in look.trials(experiment)}
    assert set(trials) == {trial["request_id"] for trial in expected}
    for trial in expected:
        ident, seed = trials[trial["request_id"]]
        assert seed == trial["seed"]
        assert hparams[ident] == trial["hparams"]
        assert f"trial {ident} run 1 seed {seed}" in look.printed(ident)
        assert look.steps(ident) == [1, 2]


@pytest.mark.slow
@pytest.mark.timeout(480)
def test_the_adaptive_search_of_the_example_finds_a_good_network(
    det: Client, look: Looking, whole_system: WholeSystem
) -> None:
    experiment = created(det("experiment", "create", str(DIGITS / "search.yaml"), str(DIGITS)))
    look.wait(experiment, timeout_s=400)
    config = yaml.safe_load((DIGITS / "search.yaml").read_text())
    trials = look.trials(experiment)
    assert len(trials) == config["searcher"]["max_trials"]
    assert {trial["state"] for trial in trials} == {"STATE_COMPLETED"}
    assert {trial["restarts"] for trial in trials} == {0}
    best = max(trial["summaryMetrics"]["validation_metrics"]["accuracy"]["max"] for trial in trials)
    assert best > GOAL
    epochs = [len(look.steps(trial["id"], "validation")) for trial in trials]
    assert max(epochs) == config["searcher"]["max_time"]
    assert min(epochs) < max(epochs), "nobody was stopped early"

    expected = {trial["request_id"]: trial for trial in drawn(config["hyperparameters"], 1234, len(trials))}
    request_by_trial = {ident: request for request, (ident, _) in created_trials(whole_system, experiment).items()}
    # Brackets share one stream, so that the order of creation is that of a random search.
    assert set(request_by_trial.values()) == set(expected)
    for trial in trials:
        assert trial["hparams"] == expected[request_by_trial[trial["id"]]]["hparams"]
    text = det("experiment", "describe", str(experiment))
    assert "digits adaptive search" in text
