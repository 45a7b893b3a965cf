"""The rule by which one layer of configuration covers another, case by case."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pytest

from libs.config import merge, normalise_experiment_config


@dataclass
class Case:
    name: str
    high: Any
    low: Any
    result: Any
    at: str = ""  # path of the part that is compared; high and low are given there too


def mounts(*pairs: str) -> list[dict[str, str]]:
    return [{"host_path": pair.split(":")[0], "container_path": pair.split(":")[1]} for pair in pairs]


def kept_mounts(*pairs: str) -> list[dict[str, Any]]:
    return [{**mount, "read_only": False, "propagation": "rprivate"} for mount in mounts(*pairs)]


def kept_devices(*pairs: str) -> list[dict[str, Any]]:
    return [{**mount, "mode": "mrw"} for mount in mounts(*pairs)]


def storage(**fields: Any) -> dict[str, Any]:
    return fields


def kept(best: int, trial_best: int, latest: int) -> dict[str, int]:
    return {"save_experiment_best": best, "save_trial_best": trial_best, "save_trial_latest": latest}


def policy(name: str | None, pattern: str, action: str) -> dict[str, str]:
    return {**({"name": name} if name else {}), "pattern": pattern, "action": action}


EXCL, CANCEL = "exclude_node", "cancel_retries"
INT = {"type": "int", "minval": 50, "maxval": 500, "count": 5}

SPEC_CASES = [
    Case(
        "bind mounts by container path",
        mounts("/asdf:/asdf"),
        mounts("/zxcv:/zxcv", "/not_asdf:/asdf"),
        kept_mounts("/asdf:/asdf", "/zxcv:/zxcv"),
        at="bind_mounts",
    ),
    Case(
        "devices by container path",
        [*mounts("/asdf:/asdf"), "/qwer:/qwer"],
        mounts("/zxcv:/zxcv", "/not_asdf:/asdf"),
        kept_devices("/asdf:/asdf", "/qwer:/qwer", "/zxcv:/zxcv"),
        at="resources.devices",
    ),
    Case(
        "a topology is taken whole",
        {"required": "zone"},
        {"preferred": "rack"},
        {"required": "zone"},
        at="resources.topology",
    ),
    Case(
        "storage over a fragment without type",
        storage(type="gcs", bucket="water", save_experiment_best=3),
        kept(10, 10, 10),
        storage(type="gcs", bucket="water", **kept(3, 10, 10)),
        at="checkpoint_storage",
    ),
    Case(
        "searcher over a fragment without name",
        {"name": "random", "max_trials": 10},
        {"metric": "sae", "smaller_is_better": True, "source_trial_id": 1, "source_checkpoint_uuid": "U"},
        {
            "name": "random",
            "max_trials": 10,
            "metric": "sae",
            "smaller_is_better": True,
            "source_trial_id": 1,
            "source_checkpoint_uuid": "U",
        },
        at="searcher",
    ),
    Case(
        "hyperparameters are atomic",
        {"a": {"type": "int", "minval": 10, "maxval": 100, "count": None}},
        {"a": INT},
        {"a": {"type": "int", "minval": 10, "maxval": 100}},
        at="hyperparameters",
    ),
    Case(
        "nested spaces merge",
        {"transformer": {"backbone": "bert"}},
        {"transformer": {"task": "lm"}},
        {
            "transformer": {
                "backbone": {"type": "const", "val": "bert"},
                "task": {"type": "const", "val": "lm"},
            }
        },
        at="hyperparameters",
    ),
    Case(
        "null is a hyperparameter",
        {"transformer": None},
        {"transformer": {"task": "lm"}},
        {"transformer": {"type": "const", "val": None}},
        at="hyperparameters",
    ),
    Case(
        "storage over another type",
        storage(type="shared_fs", host_path="/tmp", save_experiment_best=0, save_trial_best=1),
        storage(type="s3", bucket="b", **kept(10, 10, 10)),
        storage(type="shared_fs", host_path="/tmp", **kept(0, 1, 10)),
        at="checkpoint_storage",
    ),
    Case(
        "searcher over another one",
        {"name": "single", "metric": "loss", "smaller_is_better": True},
        {"name": "random", "max_trials": 3, "smaller_is_better": False, "source_checkpoint_uuid": "asdf"},
        {"name": "single", "metric": "loss", "smaller_is_better": True, "source_checkpoint_uuid": "asdf"},
        at="searcher",
    ),
    Case(
        "azure takes what it lacks",
        {"type": "azure"},
        {"type": "azure", "connection_string": "conn_str", "container": "c"},
        {"type": "azure", "connection_string": "conn_str", "container": "c"},
        at="checkpoint_storage",
    ),
    Case(
        "named log policies",
        [policy("1", "a", EXCL), policy("2", "b", CANCEL), policy("3", "c", EXCL)],
        [policy("1", "aa", EXCL), policy("4", "b", CANCEL), policy("3", "c", CANCEL)],
        [policy("1", "a", EXCL), policy("2", "b", CANCEL), policy("3", "c", EXCL), policy("4", "b", CANCEL)],
        at="log_policies",
    ),
    Case(
        "named and unnamed log policies",
        [policy("1", "a", EXCL), policy(None, "b", EXCL)],
        [policy("2", "a", CANCEL), policy(None, "b", CANCEL)],
        [policy("1", "a", EXCL), policy(None, "b", EXCL), policy("2", "a", CANCEL), policy(None, "b", CANCEL)],
        at="log_policies",
    ),
    Case(
        "unnamed log policies",
        [policy(None, "b", CANCEL), policy(None, "b", EXCL), policy(None, "c", EXCL)],
        [policy(None, "a", CANCEL), policy(None, "b", EXCL)],
        [
            policy(None, "b", CANCEL),
            policy(None, "b", EXCL),
            policy(None, "c", EXCL),
            policy(None, "a", CANCEL),
        ],
        at="log_policies",
    ),
]

PORT = {"proxy_tcp": False, "unauthenticated": False, "default_service_id": False}
RULE_CASES = [
    Case("scalars", {"name": "a"}, {"name": "b", "debug": True}, {"name": "a", "debug": True}),
    Case("null is the same as nothing", {"name": None}, {"name": "b"}, {"name": "b"}),
    Case("lists whole", ["a"], ["b", "c"], ["a"], at="entrypoint"),
    Case("objects key by key", {"a": {"x": 1}}, {"a": {"y": 2}, "b": 3}, {"a": {"x": 1, "y": 2}, "b": 3}, at="data"),
    Case("labels are a set", ["a", "b"], ["c", "a"], ["a", "b", "c"], at="labels"),
    Case("lengths are atomic", {"batches": 1}, {"epochs": 2}, {"batches": 1}, at="min_validation_period"),
    Case(
        "max_length is atomic",
        {"name": "single", "max_length": {"batches": 1}},
        {"name": "single", "max_length": {"epochs": 2}},
        {"name": "single", "max_length": {"batches": 1}},
        at="searcher",
    ),
    Case(
        "proxy ports by number",
        [{"proxy_port": 80}],
        [{"proxy_port": 80, "proxy_tcp": True}, {"proxy_port": 90}],
        [{"proxy_port": 80, **PORT}, {"proxy_port": 90, **PORT}],
        at="environment.proxy_ports",
    ),
    Case(
        "variables: the later wins, so the higher comes later",
        {"cpu": ["C=3"]},
        ["A=1"],
        {"cpu": ["A=1", "C=3"], "cuda": ["A=1"], "rocm": ["A=1"]},
        at="environment.environment_variables",
    ),
    Case("images per slot type", {"gpu": "x"}, "y", {"cpu": "y", "cuda": "x", "rocm": "y"}, at="environment.image"),
    Case("ports are a map", {"a": 1}, {"a": 2, "b": 3}, {"a": 1, "b": 3}, at="environment.ports"),
    Case("capabilities whole", ["A"], ["B"], ["A"], at="environment.add_capabilities"),
    Case(
        "pod specs by strategic merge",
        {"spec": {"tolerations": [{"key": "b"}], "nodeSelector": {"x": None}, "imagePullSecrets": [{"name": "q"}]}},
        {"spec": {"tolerations": [{"key": "a"}], "nodeSelector": {"x": "1", "y": "2"}, "containers": [{"name": "s"}]}},
        {
            "spec": {
                "tolerations": [{"key": "b"}],
                "nodeSelector": {"y": "2"},
                "containers": [{"name": "s"}],
                "imagePullSecrets": [{"name": "q"}],
            }
        },
        at="environment.pod_spec",
    ),
    Case(
        "a typed hyperparameter hides a space, and the other way round",
        {"a": 1, "b": {"c": 1}},
        {"a": {"c": 1}, "b": 1, "d": 2},
        {
            "a": {"type": "const", "val": 1},
            "b": {"c": {"type": "const", "val": 1}},
            "d": {"type": "const", "val": 2},
        },
        at="hyperparameters",
    ),
    Case(
        "a fragment takes the type below",
        kept(1, 2, 3),
        {"type": "gcs", "bucket": "b"},
        {"type": "gcs", "bucket": "b", **kept(1, 2, 3)},
        at="checkpoint_storage",
    ),
    Case(
        "one type fills in what is missing",
        {"type": "s3", "bucket": "b"},
        {"type": "s3", "bucket": "c", "secret_key": "s"},
        {"type": "s3", "bucket": "b", "secret_key": "s"},
        at="checkpoint_storage",
    ),
    Case(
        "azure credentials from above",
        {"type": "azure", "account_url": "u"},
        {"type": "azure", "connection_string": "conn_str", "container": "c"},
        {"type": "azure", "account_url": "u", "container": "c"},
        at="checkpoint_storage",
    ),
    Case(
        "azure credentials from below",
        {"type": "azure", "credential": "mine"},
        {"type": "azure", "account_url": "u", "credential": "theirs"},
        {"type": "azure", "account_url": "u", "credential": "theirs"},
        at="checkpoint_storage",
    ),
    Case(
        "azure credentials over no storage",
        {"type": "azure", "account_url": "u", "credential": "mine"},
        kept(1, 1, 1),
        {"type": "azure", "account_url": "u", "credential": "mine", **kept(1, 1, 1)},
        at="checkpoint_storage",
    ),
    Case("a section only one has", {"slurm": {"gpu_type": "a"}}, {"pbs": {}}, {"slurm": {"gpu_type": "a"}, "pbs": {}}),
]


def placed(path: str, value: Any) -> Any:
    for key in reversed([part for part in path.split(".") if part]):
        value = {key: value}
    return value


@pytest.mark.parametrize("case", [*SPEC_CASES, *RULE_CASES], ids=attrgetter("name"))
def test_layers_merge(case: Case) -> None:
    high = normalise_experiment_config(placed(case.at, case.high))
    low = normalise_experiment_config(placed(case.at, case.low))
    before = copy.deepcopy((high, low))
    assert merge(high, low) == placed(case.at, case.result)
    assert (high, low) == before


@pytest.mark.parametrize("case", [*SPEC_CASES, *RULE_CASES], ids=attrgetter("name"))
def test_result_shares_nothing_with_the_layers(case: Case) -> None:
    high = normalise_experiment_config(placed(case.at, case.high))
    low = normalise_experiment_config(placed(case.at, case.low))
    merged = merge(high, low)
    text = json.dumps(merged, sort_keys=True)
    high_before, low_before = json.dumps(high), json.dumps(low)
    scribble(merged)
    assert (json.dumps(high), json.dumps(low)) == (high_before, low_before)
    assert json.dumps(merge(high, low), sort_keys=True) == text


def scribble(value: Any) -> None:
    if isinstance(value, dict):
        for element in value.values():
            scribble(element)
        value["scribble"] = 1
    elif isinstance(value, list):
        for element in value:
            scribble(element)
        value.append("scribble")


def test_nothing_is_a_neutral_layer() -> None:
    config = normalise_experiment_config({"name": "a", "environment": {"image": "x"}, "searcher": {"name": "single"}})
    assert merge(config, {}) == merge({}, config) == config
