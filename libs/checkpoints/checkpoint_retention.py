"""The retention policy of an experiment: which of its checkpoints are good or new enough to be kept.

Source: docs/reference/experiments.md 10.4, with its remedy for unvalidated checkpoints: ranks are per trial or per
experiment.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from libs.config.stored import count_in, part


class Policy(Struct, frozen=True, kw_only=True):
    """How many checkpoints to keep; a checkpoint stays if any of the three wants it."""

    save_experiment_best: int
    save_trial_best: int
    save_trial_latest: int


class Candidate(Struct, frozen=True, kw_only=True):
    """A checkpoint that may be deleted: its files exist, and nothing else refers to it.

    signed         the searcher metric of the validation at the same step, so that smaller is better; None without one
    validation_id  the row of that validation; breaks ties, earlier first
    storage_id     row of storage_backends, None for the storage in the configuration of the experiment
    """

    uuid: str
    trial_id: int
    steps_completed: int
    signed: float | None = None
    validation_id: int | None = None
    storage_id: int | None = None


def policy_of(config: Mapping[str, Any]) -> Policy:
    """The policy in a stored experiment configuration."""
    storage = part(config, "checkpoint_storage")
    return Policy(
        save_experiment_best=count_in(storage, "save_experiment_best") or 0,
        save_trial_best=_or(count_in(storage, "save_trial_best"), 1),
        save_trial_latest=_or(count_in(storage, "save_trial_latest"), 1),
    )


def checkpoints_to_delete(candidates: Iterable[Candidate], policy: Policy) -> list[Candidate]:
    """Those that the policy does not keep, in the order given.

    candidates  of one experiment; of checkpoints of one trial at the same step, a later one counts as newer
    """
    rows = list(candidates)
    by_trial: dict[int, list[Candidate]] = defaultdict(list)
    for row in rows:
        by_trial[row.trial_id].append(row)
    kept = _best(rows, policy.save_experiment_best)
    for of_trial in by_trial.values():
        kept |= _best(of_trial, policy.save_trial_best)
        kept |= _latest(of_trial, policy.save_trial_latest)
    return [row for row in rows if row.uuid not in kept]


def _best(rows: list[Candidate], count: int) -> set[str]:
    validated = [row for row in rows if row.signed is not None]
    return {row.uuid for row in sorted(validated, key=_by_value)[:count]}


def _by_value(row: Candidate) -> tuple[bool, float, int]:
    assert row.signed is not None
    worst = math.isnan(row.signed)  # NaN is no better than any number
    return worst, 0.0 if worst else row.signed, row.validation_id or 0


def _latest(rows: list[Candidate], count: int) -> set[str]:
    newest_first = sorted(enumerate(rows), key=lambda placed: (placed[1].steps_completed, placed[0]), reverse=True)
    return {row.uuid for _, row in newest_first[:count]}


def _or(value: Any, default: int) -> int:
    return default if value is None else int(value)
