"""The last look: storage tables, what is eventually required, and searchers of the past."""

from __future__ import annotations

from typing import Any

import pytest

from libs.config import (
    InvalidConfig,
    check_complete,
    check_current_searcher,
    check_entrypoint,
    normalise_experiment_config,
    with_defaults,
)

OUTSIDE = "storage_path must either be a relative directory or a subdirectory of host_path"
PREFIX = "prefix cannot contain /../"
EXACTLY_ONE = "Exactly one of connection_string or account_url must be set"
BOTH = "credential and connection_string must not both be set"


def complete(**parts: Any) -> dict[str, Any]:
    config = {
        "searcher": {"name": "single", "metric": "loss"},
        "checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"},
        **parts,
    }
    given = {key: value for key, value in config.items() if value is not None}
    return with_defaults(normalise_experiment_config(given), seed=1, name="n")


def shared_fs(storage_path: str | None) -> dict[str, Any]:
    return {"type": "shared_fs", "host_path": "/tmp", "storage_path": storage_path}


def azure(**fields: Any) -> dict[str, Any]:
    return {"type": "azure", **fields}


STORAGES: list[tuple[dict[str, Any], list[str]]] = [
    (shared_fs(None), []),
    (shared_fs("/tmp/storage_path"), []),
    (shared_fs("/tmp"), []),
    (shared_fs("storage_path"), []),
    (shared_fs("a/../b"), []),
    (shared_fs("..b"), []),
    (shared_fs("/storage_path"), [OUTSIDE]),
    (shared_fs("../storage_path"), [OUTSIDE]),
    (shared_fs("anywhere/../../storage_path"), [OUTSIDE]),
    (shared_fs("/tmp/anywhere/../../storage_path"), [OUTSIDE]),
    (shared_fs("/tmpfoo"), [OUTSIDE]),
    ({"type": "shared_fs", "host_path": "/", "storage_path": "/any"}, []),
    ({"type": "shared_fs"}, ["host_path is a required property"]),
    ({"type": "directory"}, ["container_path is a required property"]),
    ({"type": "s3"}, ["bucket is a required property"]),
    *(
        ({"type": kind, "bucket": "b", "prefix": prefix}, problems)
        for kind in ("s3", "gcs")
        for prefix, problems in [
            ("..", [PREFIX]),
            ("../p", [PREFIX]),
            ("this/../p", [PREFIX]),
            ("p/..", [PREFIX]),
            ("this/is/././.../a/", []),
            ("a..b", []),
        ]
    ),
    (azure(container="c", connection_string="s", credential=None), []),
    (azure(container="c", account_url="u", credential="x"), []),
    (azure(), ["container is a required property", EXACTLY_ONE]),
    (azure(connection_string="s"), ["container is a required property"]),
    (azure(container="c", connection_string="s", account_url="u"), [EXACTLY_ONE]),
    (azure(container="c", connection_string="s", credential="x"), [BOTH]),
]


@pytest.mark.parametrize(("storage", "problems"), STORAGES, ids=[str(storage) for storage, _ in STORAGES])
def test_storage_of_a_complete_configuration(storage: dict[str, Any], problems: list[str]) -> None:
    if not problems:
        check_complete(complete(checkpoint_storage=storage))
        return
    with pytest.raises(InvalidConfig) as caught:
        check_complete(complete(checkpoint_storage=storage))
    for problem in problems:
        assert f": {problem}" in str(caught.value)


@pytest.mark.parametrize("kind", ["s3", "gcs"])
def test_a_prefix_that_leads_out_of_the_bucket_is_named(kind: str) -> None:
    with pytest.raises(InvalidConfig, match=r"<config>\.checkpoint_storage\.prefix: prefix cannot contain /\.\./"):
        check_complete(complete(checkpoint_storage={"type": kind, "bucket": "b", "prefix": "a/../b"}))


INCOMPLETE: list[tuple[dict[str, Any], str]] = [
    ({"checkpoint_storage": None}, "<config>.checkpoint_storage: type is a required property"),
    (
        {"checkpoint_storage": {"save_trial_best": 1}},
        "<config>.checkpoint_storage: type is a required property",
    ),
    ({"searcher": None}, "<config>: searcher is a required property"),
    ({"searcher": {"metric": "m"}}, "<config>.searcher: name is a required property"),
    ({"searcher": {"name": "single"}}, "<config>.searcher: metric is a required property"),
    ({"searcher": {"name": "random", "metric": "m"}}, "<config>.searcher: max_trials is a required property"),
    (
        {"searcher": {"name": "async_halving", "metric": "m", "max_trials": 1}},
        "<config>.searcher: num_rungs is a required property",
    ),
    (
        {"resources": {"slots_per_trial": 4, "max_slots": 2}},
        "<config>.resources: slots_per_trial (4) must not be greater than max_slots (2)",
    ),
]


@pytest.mark.parametrize(("parts", "message"), INCOMPLETE, ids=[str(parts) for parts, _ in INCOMPLETE])
def test_missing_part_is_named(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        check_complete(complete(**parts))
    expected = f"invalid experiment configuration: config is invalid or incomplete: {message}"
    assert str(caught.value) == expected


def test_layers_that_contradict_each_other_are_refused() -> None:
    config = complete()
    config["profiling"] |= {"begin_on_batch": 5, "end_after_batch": 2}
    with pytest.raises(InvalidConfig, match="begin_on_batch must be less than end_after_batch"):
        check_complete(config)


def test_grid_of_one_layer_meets_the_space_of_another() -> None:
    config = complete(hyperparameters={"a": {"type": "int", "minval": 1, "maxval": 2}})
    config["searcher"]["name"] = "grid"
    with pytest.raises(InvalidConfig, match=r"<config>\.hyperparameters\.a: grid search is in use"):
        check_complete(config)


def test_bare_configuration_lacks_everything() -> None:
    with pytest.raises(InvalidConfig) as caught:
        check_complete({})
    assert str(caught.value).split("incomplete: ")[1].split("\n") == [
        "<config>.checkpoint_storage: type is a required property",
        "<config>.reproducibility: experiment_seed is a required property",
        "<config>: hyperparameters is a required property",
        "<config>: name is a required property",
        "<config>: searcher is a required property",
    ]


REMOVED = "invalid experiment configuration: the '{}' searcher has been removed and is not valid for new experiments"
UNTIMED = "invalid experiment configuration: the `{}` searcher requires `max_time` and `time_metric` to be set"
TIMES: list[tuple[dict[str, Any], str | None]] = [
    ({}, UNTIMED),
    ({"max_time": 5}, UNTIMED),
    ({"time_metric": "t"}, UNTIMED),
    ({"max_time": 5, "time_metric": None}, UNTIMED),
    ({"max_time": 5, "time_metric": "t"}, None),
]
SEARCHERS: list[tuple[dict[str, Any], str | None]] = [
    *(({"name": name}, None) for name in ("single", "random", "grid")),
    *(({"name": name}, REMOVED) for name in ("custom", "sync_halving", "adaptive", "adaptive_simple")),
    *(({"name": name, **fields}, message) for name in ("adaptive_asha", "async_halving") for fields, message in TIMES),
]


@pytest.mark.parametrize(("searcher", "message"), SEARCHERS, ids=[str(searcher) for searcher, _ in SEARCHERS])
def test_only_current_searchers_start(searcher: dict[str, Any], message: str | None) -> None:
    if message is None:
        check_current_searcher({"searcher": searcher})
        return
    with pytest.raises(InvalidConfig) as caught:
        check_current_searcher({"searcher": searcher})
    assert str(caught.value) == message.format(searcher["name"])


def test_managed_experiments_have_something_to_run() -> None:
    check_entrypoint({"entrypoint": "x:Trial"})
    with pytest.raises(InvalidConfig, match="managed experiments require entrypoint"):
        check_entrypoint({"entrypoint": None})
