"""Decoding of the searcher section, and what becomes of sections that cannot be run."""

from typing import Any

import pytest

from libs.searchers.config import parse_searcher
from libs.searchers.errors import InvalidSearcher
from libs.searchers.methods.adaptive_asha import AdaptiveAshaConfig, Mode
from libs.searchers.methods.async_halving import AsyncHalvingConfig
from libs.searchers.methods.random_search import RandomConfig

ASHA = {"name": "async_halving", "metric": "loss", "max_trials": 8, "num_rungs": 3}


def test_stored_sections_decode_with_their_unset_and_unknown_fields() -> None:
    section = {"name": "random", "max_trials": 3, "metric": "loss", "source_trial_id": None, "max_length": None}
    assert parse_searcher(section).config == RandomConfig(max_trials=3)


def test_adaptive_asha_defaults() -> None:
    section = {"name": "adaptive_asha", "metric": "loss", "max_trials": 8, "max_time": 9, "time_metric": "epochs"}
    config = parse_searcher({**section, "bracket_rungs": None, "stop_once": True}).config
    assert config == AdaptiveAshaConfig(metric="loss", max_trials=8, max_time=9, time_metric="epochs")
    assert isinstance(config, AdaptiveAshaConfig)
    assert (config.mode, config.divisor, config.max_rungs) == (Mode.STANDARD, 4, 5)


@pytest.mark.parametrize(
    ("length", "max_time", "time_metric"),
    [
        ({"max_length": {"epochs": 12}}, 12, "epochs"),
        ({"max_length": 900}, 900, "batches"),
        ({"max_length": {"records": 5}, "max_time": 7, "time_metric": "steps"}, 7, "steps"),
    ],
)
def test_old_configurations_say_max_length(length: dict[str, Any], max_time: int, time_metric: str) -> None:
    config = parse_searcher({**ASHA, **length}).config
    assert isinstance(config, AsyncHalvingConfig)
    assert (config.max_time, config.time_metric) == (max_time, time_metric)


REFUSED = [
    ({"name": "custom"}, "^invalid searcher configuration$"),
    ({"name": "sync_halving", "num_rungs": 3}, "^invalid searcher configuration$"),
    ({"name": ["random"]}, "^invalid searcher configuration$"),
    ({}, "^invalid searcher configuration$"),
    ({"name": "random"}, "missing required field `max_trials`"),
    ({"name": "random", "max_trials": 0}, "max_trials"),
    (ASHA, "the `async_halving` searcher requires `max_time` and `time_metric` to be set"),
    ({**ASHA, "max_length": {"batches": 1, "epochs": 1}}, "requires `max_time`"),
    ({**ASHA, "max_time": 9, "time_metric": "t", "divisor": 1}, "divisor"),
]


@pytest.mark.parametrize(("section", "message"), REFUSED)
def test_sections_that_cannot_be_run_are_refused(section: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSearcher, match=message):
        parse_searcher(section)
