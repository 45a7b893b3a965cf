"""What cannot be continued, and why: docs/reference/experiments.md 7. What goes on is in ``tests/e2e``."""

from __future__ import annotations

from typing import Any, NamedTuple

SINGLE = "{name: one, entrypoint: run, searcher: {name: single, metric: loss}, hyperparameters: {lr: 1}}"
ASHA = (
    "{entrypoint: run, hyperparameters: {lr: {type: double, minval: 0, maxval: 1}}, searcher: {name: adaptive_asha,"
    " metric: loss, max_trials: 4, time_metric: batches, max_time: 9}}"
)
SEARCH = (
    "{name: digits, entrypoint: run, hyperparameters: {lr: {type: double, minval: 0, maxval: 1}}, searcher:"
    " {name: random, metric: loss, max_trials: 4}}"
)


_WHOLE = {
    "name": "one",
    "entrypoint": "run",
    "hyperparameters": {"lr": 1},
    "searcher": {"name": "single", "metric": "loss"},
    "checkpoint_storage": {"type": "directory", "container_path": "/kept"},
    "reproducibility": {"experiment_seed": 7},
}


def stored_without(name: str) -> dict[str, Any]:
    """A stored configuration from long ago, which lacks this."""
    return {key: value for key, value in _WHOLE.items() if key != name}


class Refusal(NamedTuple):
    name: str
    config: str
    override: str
    message: str
    values: dict[str, Any] = {}


REFUSALS = [
    Refusal("search with rungs", ASHA, "", "Unsupported searcher type provided: 'adaptive_asha'"),
    Refusal(
        "changes of a search",
        SEARCH,
        "max_restarts: 1",
        "override config is provided and experiment is not single searcher, got 'random' instead",
    ),
    Refusal(
        "search instead of a single trial",
        SINGLE,
        "searcher: {name: random, max_trials: 2}",
        "override config is provided and experiment is not single searcher, got 'random' instead",
    ),
    Refusal("project", SINGLE, "project: p", "override config must not set project"),
    Refusal("workspace", SINGLE, "workspace: w", "override config must not set workspace"),
    Refusal("no YAML", SINGLE, "a: [1", "invalid experiment configuration: invalid YAML"),
    Refusal("unknown field", SINGLE, "speed: 3", 'additionalProperties "speed" not allowed'),
    Refusal(
        "layers that do not agree",
        SINGLE,
        "resources: {slots_per_trial: 4, max_slots: 2}",
        "slots_per_trial (4) must not be greater than max_slots (2)",
    ),
    Refusal("unknown pool", SINGLE, "resources: {resource_pool: nowhere}", "resource pool nowhere does not exist"),
    Refusal("unknown checkpoint", SINGLE, "searcher: {source_checkpoint_uuid: none}", "no checkpoint found with uuid"),
    Refusal("not ended", SINGLE, "", "experiment in non terminal state 'PAUSED', try again later", {"state": "PAUSED"}),
    Refusal("running", SINGLE, "", "experiment in non terminal state 'ACTIVE', try again later", {"state": "ACTIVE"}),
    Refusal(
        "on its way to its end",
        SINGLE,
        "",
        "experiment in non terminal state 'STOPPING_CANCELED', try again later",
        {"state": "STOPPING_CANCELED"},
    ),
    Refusal("running search", SEARCH, "", "experiment in non terminal state 'ACTIVE'", {"state": "ACTIVE"}),
    Refusal(
        "being deleted",
        SINGLE,
        "",
        "experiment in non terminal state 'DELETING', try again later",
        {"state": "DELETING"},
    ),
    Refusal("nothing left to do", SEARCH, "{}", "experiment has been completed, cannot continue this experiment"),
    Refusal("archived", SINGLE, "", "is archived and cannot be continued", {"archived": True}),
    Refusal("nothing stored", SINGLE, "", "searcher.name is neither in the stored configuration nor", {"config": {}}),
    *(
        Refusal(f"{name} not stored", SINGLE, "max_restarts: 1", message, {"config": stored_without(name)})
        for name, message in {
            "name": "<config>: name is a required property\ngive what the stored configuration lacks in the override",
            "reproducibility": "<config>.reproducibility: experiment_seed is a required property\ngive what the stored",
            "checkpoint_storage": "<config>.checkpoint_storage: type is a required property\ngive what the stored",
            "entrypoint": "managed experiments require entrypoint",
        }.items()
    ),
    Refusal(
        "a metric not stored",
        SINGLE,
        "",
        "<config>.searcher: metric is a required property\ngive what the stored configuration lacks in the override",
        {"config": {**_WHOLE, "searcher": {"name": "single"}}},
    ),
    Refusal(
        "nonsense stored",
        SINGLE,
        "",
        "is not valid today, create a new experiment from a corrected copy of it instead: <config>.max_restarts:",
        {"config": {**_WHOLE, "max_restarts": "many"}},
    ),
    Refusal("unmanaged", SINGLE, "", "unmanaged experiments cannot be continued", {"unmanaged": True}),
]
