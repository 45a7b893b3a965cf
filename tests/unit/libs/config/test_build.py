"""The pipeline from submitted text to stored configuration: the order of its layers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from libs.config import InvalidConfig, build_config, parse_experiment_config, parse_template
from libs.errors import InvalidRequest

USER: dict[str, Any] = {"searcher": {"name": "single", "metric": "loss"}, "entrypoint": "model_def:MyTrial"}
SHARED = {"type": "shared_fs", "host_path": "/tmp"}


def build(user: dict[str, Any] | None = None, **layers: Any) -> dict[str, Any]:
    options = {"master_storage": SHARED, "priority_default": 50, "seed": 7, "name": "N", **layers}
    return build_config(parse_experiment_config(json.dumps({**USER, **(user or {})})), **options)


def template(**config: Any) -> dict[str, Any]:
    return parse_template("t", config)


def env(*variables: str) -> dict[str, Any]:
    return {"environment": {"environment_variables": list(variables)}}


def test_layers_lie_in_the_documented_order() -> None:
    config = build(
        {"name": "user", **env("USER=1"), "labels": ["user"]},
        template=template(name="template", description="template", **env("TEMPLATE=1")),
        pool_defaults={
            "environment_variables": ["POOL=1"],
            "image": {"cpu": "pool-image"},
            "preemption_timeout": 60,
            "cpu_pod_spec": {"spec": {"hostname": "cpu"}},
            "gpu_pod_spec": {"spec": {"hostname": "gpu"}},
        },
        invariants=[
            {"name": "workspace", "description": "workspace", **env("WORKSPACE=1"), "labels": ["workspace"]},
            {"name": "global", **env("GLOBAL=1")},
        ],
        resource_pool="pool",
    )
    assert (config["name"], config["description"]) == ("global", "workspace")
    assert config["environment"]["environment_variables"]["cuda"] == [
        "POOL=1",
        "TEMPLATE=1",
        "USER=1",
        "WORKSPACE=1",
        "GLOBAL=1",
    ]
    assert sorted(config["labels"]) == ["user", "workspace"]
    assert config["environment"]["image"]["cpu"] == "pool-image"
    assert config["environment"]["image"]["cuda"].startswith("determinedai/")
    assert config["environment"]["pod_spec"] == {"spec": {"hostname": "gpu"}}
    assert config["preemption_timeout"] == 60
    assert config["resources"]["resource_pool"] == "pool"
    assert config["resources"]["priority"] == 50


STORAGE_CASES: list[tuple[Any, Any, Any, Any]] = [
    (None, None, None, "<config>.checkpoint_storage: type is a required property"),
    (None, {"type": "gcs", "bucket": "w"}, None, {"type": "gcs", "bucket": "w"}),
    (None, {"type": "gcs", "bucket": "w"}, SHARED, {"type": "gcs", "bucket": "w"}),
    (None, None, SHARED, SHARED),
    (
        {"type": "s3", "bucket": "user"},
        {"type": "s3", "bucket": "w", "secret_key": "k"},
        SHARED,
        {"type": "s3", "bucket": "user", "secret_key": "k"},
    ),
    (
        {"save_trial_best": 9},
        {"type": "gcs", "bucket": "w", "save_trial_latest": 8},
        {**SHARED, "save_experiment_best": 7, "save_trial_best": 7},
        {"type": "gcs", "bucket": "w", "save_trial_best": 9, "save_trial_latest": 8, "save_experiment_best": 7},
    ),
]


@pytest.mark.parametrize(("user", "workspace", "master", "result"), STORAGE_CASES)
def test_checkpoint_storage_comes_from_user_then_workspace_then_cluster(
    user: Any, workspace: Any, master: Any, result: Any
) -> None:
    def built() -> dict[str, Any]:
        return build({"checkpoint_storage": user}, workspace_storage=workspace, master_storage=master)

    if isinstance(result, str):
        with pytest.raises(InvalidConfig) as caught:
            built()
        assert result in str(caught.value)
        return
    kept = {"save_experiment_best": 0, "save_trial_best": 1, "save_trial_latest": 1}
    stored = {key: value for key, value in built()["checkpoint_storage"].items() if value is not None}
    stored.pop("propagation", None)
    assert stored == {**kept, **result}


SLOTS = [({}, None, "gpu"), ({"slots_per_trial": 0}, None, "cpu"), ({}, {"slots_per_trial": 0}, "cpu")]


@pytest.mark.parametrize(("user", "below", "kind"), SLOTS)
def test_slots_of_user_and_template_choose_the_pod_spec(user: Any, below: Any, kind: str) -> None:
    config = build(
        {"resources": user},
        template=template(resources=below),
        pool_defaults={f"{name}_pod_spec": {"metadata": {"labels": {"for": name}}} for name in ("cpu", "gpu")},
    )
    assert config["environment"]["pod_spec"]["metadata"]["labels"] == {"for": kind}


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


def test_pod_spec_nulls_and_directives_meet_every_layer_below() -> None:
    config = build(
        {
            "environment": {
                "pod_spec": pod(tolerations=None, containers=[{"name": "side", "$patch": "delete"}], hostname="u")
            }
        },
        template=template(environment={"pod_spec": pod(subdomain="t", hostname="t")}),
        pool_defaults={"gpu_pod_spec": pod(tolerations=[{"key": "p"}], containers=[{"name": "side"}, {"name": "x"}])},
    )
    assert config["environment"]["pod_spec"] == pod(containers=[{"name": "x"}], hostname="u", subdomain="t")


def test_arguments_of_batch_schedulers_follow_the_defaults() -> None:
    config = build(
        {"slurm": {"sbatch_args": ["user"]}},
        template=template(slurm={"sbatch_args": ["template"], "gpu_type": "t"}, pbs={"pbsbatch_args": ["t"]}),
        pool_defaults={"slurm": {"sbatch_args": ["pool"]}},
    )
    assert config["slurm"] == {"sbatch_args": ["pool", "user"], "gpu_type": "t"}
    assert config["pbs"] == {"pbsbatch_args": ["t"]}


def test_priority_of_the_user_stays() -> None:
    assert build({"resources": {"priority": 3}})["resources"]["priority"] == 3


def test_a_bad_template_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest) as caught:
        template(bogus=1)
    assert str(caught.value) == (
        "template 't': invalid experiment configuration: version 0 experiment config is invalid: "
        'config is invalid: <config>: additionalProperties "bogus" not allowed'
    )


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"resources": {"slots": 1}}, {}, '<config>.resources: additionalProperties "slots" not allowed'),
    ({"entrypoint": None}, {}, "managed experiments require entrypoint"),
    ({"searcher": {"name": "custom", "metric": "m"}}, {}, "the 'custom' searcher has been removed"),
    ({}, {"invariants": [{"bogus": 1}]}, 'additionalProperties "bogus" not allowed'),
    ({"searcher": None}, {}, "searcher is a required property"),
]


@pytest.mark.parametrize(("user", "layers", "message"), REFUSED, ids=[message for _, _, message in REFUSED])
def test_bad_layer_is_refused(user: dict[str, Any], layers: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        build(user, **layers)
    assert message in str(caught.value)


def test_unmanaged_experiments_need_no_entrypoint() -> None:
    assert build({"entrypoint": None}, managed=False)["entrypoint"] is None


def test_a_search_that_no_memory_holds_is_refused() -> None:
    endless = {"type": "int", "minval": 0, "maxval": 10**18, "count": 10**18}
    with pytest.raises(InvalidConfig, match="grid search begins with more than 100000 trials"):
        build({"searcher": {"name": "grid", "metric": "loss"}, "hyperparameters": {"a": endless}})
