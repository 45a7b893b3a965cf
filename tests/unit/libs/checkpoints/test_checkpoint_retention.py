"""The retention policy against the tables of docs/reference/experiments.md 10.4."""

from __future__ import annotations

import math
import random

import pytest

from libs.checkpoints.checkpoint_retention import Candidate, Policy, checkpoints_to_delete, policy_of

# (trial, step) -> searcher metric; checkpoints are numbered in this order, from 1.
DOCUMENTED = [None, None, 0.6, 0.5, 0.4], [None, 0.2, 0.3, None, None]


def candidates(*trials: list[float | None]) -> list[Candidate]:
    made: list[Candidate] = []
    for trial_id, values in enumerate(trials, 1):
        for step, value in enumerate(values, 1):
            number = len(made) + 1
            made.append(
                Candidate(uuid=str(number), trial_id=trial_id, steps_completed=step, signed=value, validation_id=number)
            )
    return made


def kept(rows: list[Candidate], experiment_best: int, trial_best: int, latest: int) -> list[int]:
    policy = Policy(save_experiment_best=experiment_best, save_trial_best=trial_best, save_trial_latest=latest)
    deleted = {row.uuid for row in checkpoints_to_delete(rows, policy)}
    return [int(row.uuid) for row in rows if row.uuid not in deleted]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ((0, 0, 0), []),
        ((2, 0, 0), [7, 8]),
        ((5, 0, 0), [3, 4, 5, 7, 8]),
        ((0, 1, 0), [5, 7]),
        ((0, 3, 0), [3, 4, 5, 7, 8]),
        ((0, 0, 1), [5, 10]),
        ((0, 0, 3), [3, 4, 5, 8, 9, 10]),
        ((2, 1, 0), [5, 7, 8]),
        ((2, 0, 1), [5, 7, 8, 10]),
        ((0, 1, 1), [5, 7, 10]),
        ((2, 1, 1), [5, 7, 8, 10]),
    ],
)
def test_documented_table(policy: tuple[int, int, int], expected: list[int]) -> None:
    assert kept(candidates(*DOCUMENTED), *policy) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([float(-step) for step in range(10)], [8, 9, 10]),
        ([float(step) for step in range(10)], [1, 2, 3, 9, 10]),
    ],
    ids=["improving", "worsening"],
)
def test_ten_steps_with_3_1_2(values: list[float | None], expected: list[int]) -> None:
    assert kept(candidates(values), 3, 1, 2) == expected


def test_of_equals_the_first_is_the_best_and_nan_is_the_worst() -> None:
    assert kept(candidates([math.nan, 1.0, 1.0]), 0, 1, 0) == [2]
    assert kept(candidates([math.nan, 1.0, 1.0]), 0, 3, 0) == [1, 2, 3]


def test_the_order_of_rows_does_not_decide_when_steps_and_validations_do() -> None:
    rows = candidates(*DOCUMENTED)
    shuffled = rows[:]
    random.Random(7).shuffle(shuffled)
    assert sorted(kept(shuffled, 2, 1, 1)) == kept(rows, 2, 1, 1)


def test_of_two_checkpoints_at_one_step_the_later_one_is_the_latest() -> None:
    rows = [Candidate(uuid=uuid, trial_id=1, steps_completed=5) for uuid in ("1", "2")]
    assert kept(rows, 0, 0, 1) == [2]


def test_policy_of_a_configuration() -> None:
    assert policy_of({"checkpoint_storage": {"save_trial_best": 0}}) == Policy(
        save_experiment_best=0, save_trial_best=0, save_trial_latest=1
    )
