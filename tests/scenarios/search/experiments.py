"""The search language over experiments, one row per rule: docs/reference/platform.md 9.1, experiments.md 13.5.

Experiments are those of ``tests/integration/api/search/conftest.py``, by name.
"""

from __future__ import annotations

import json
from typing import Any

from services.api.queries.search.language.filters import MOST_DEPTH, MOST_NODES
from tests.scenarios.search.nodes import field, group

ALL = ["a", "b", "c"]
HP, METRIC, RUNS_OWN = "HYPERPARAMETERS", "VALIDATIONS", "RUN_HYPERPARAMETERS"

FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    (field("name", "contains", "ALPHA"), ["a"]),
    (field("name", "contains", "t\\set"), ["a"]),
    (field("name", "contains", "_"), []),
    (field("name", "notContains", "ALPHA"), ["b", "c"]),
    (field("name", "=", "beta"), ["b"]),
    (field("name", "!=", "beta"), ["a", "c"]),
    (field("description", "isEmpty"), ["b", "c"]),
    (field("description", "notEmpty"), ["a"]),
    (field("tags", "contains", "prod"), ["a"]),
    (field("tags", "isEmpty"), ["b", "c"]),
    (field("searcherType", "=", "random"), ["a"]),
    (field("searcherMetric", "=", "loss"), ["b", "c"]),
    (field("resourcePool", "=", "gpus"), ["b"]),
    (field("startTime", ">", "2030-01-01T14:14:18.915483952Z"), ["b"]),
    (field("startTime", "<=", "2030-01"), ["a", "c"]),
    (field("startTime", "contains", "2030-01-02T"), ["b"]),
    (field("endTime", "isEmpty"), ["b", "c"]),
    (field("duration", "=", 90), ["a"]),
    (field("state", "=", "PAUSED"), ["b"]),
    (field("numTrials", ">=", 2), ["a"]),
    (field("progress", "=", 100), ["a"]),
    (field("progress", "=", 0), ["c"]),
    (field("user", "=", 2), ["b"]),
    (field("user", "=", "2"), ["b"]),
    (field("forkedFrom", "notEmpty"), ["b"]),
    (field("checkpointSize", ">", 4_999_999_999.5), ["a"]),
    (field("checkpointSize", "<", 10**40), ALL),
    (field("checkpointCount", "=", 4), ["a"]),
    (field("searcherMetricsVal", ">=", 0.9), ["a"]),
    (field("searcherMetricsVal", "isEmpty"), ["b", "c"]),
    (field("externalExperimentId", "=", "outside"), ["b"]),
    (field("externalTrialId", "=", "run-1"), ["a"]),
    (field("name", "=", None), ALL),
    # Metrics, of the best trial.
    (field("validation.accuracy.last", ">=", 0.9, METRIC, "NUMBER"), ["a"]),
    (field("validation.accuracy.mean", ">=", 0.9, METRIC, "NUMBER"), []),
    (field("validation.accuracy.last", "!=", 0.9, METRIC, "NUMBER"), []),
    (field("training.loss.min", "<", 1, "TRAINING", "NUMBER"), ["a"]),
    (field("group_b.value.a.last", "=", 2, "CUSTOM_METRIC", "NUMBER"), ["a"]),
    (field("validation.word.last", "contains", "App", METRIC, "TEXT"), ["a"]),
    (field("validation.word.last", "contains", "app", METRIC, "TEXT"), []),
    (field("validation.none.last", "isEmpty", None, METRIC, "NUMBER"), ALL),
    (field("validation.accuracy.last", "notEmpty", None, METRIC, "NUMBER"), ["a"]),
    # Hyperparameters: ranges, choices, constants.
    (field("hp.lr", ">", 0.5, HP, "NUMBER"), ["a", "b"]),
    (field("hp.lr", ">", 1, HP, "NUMBER"), []),
    (field("hp.lr", "contains", 1, HP, "NUMBER"), ["a", "b"]),
    (field("hp.lr", "notContains", 2, HP, "NUMBER"), ["a", "b"]),
    (field("hp.lr", "=", "0.1", HP, "TEXT"), []),
    (field("hp.lr", "isEmpty", None, HP, "NUMBER"), ["c"]),
    (field("lr", ">", 0.5, HP, "NUMBER"), ["a", "b"]),
    (field("net.depth", "<=", 4, HP, "NUMBER"), ["a"]),
    (field("none", "notEmpty", None, HP, "NUMBER"), []),
    (field("hp.opt", "contains", "sgd", HP, "TEXT"), ["a"]),
    (field("hp.opt", "contains", "sgd", HP, "UNSPECIFIED"), ["a"]),
    (field("hp.opt", "contains", "7", HP, "UNSPECIFIED"), ["a"]),
    (field("hp.opt", "contains", 8, HP, "UNSPECIFIED"), ["a"]),
    (field("hp.opt", "contains", True, HP, "UNSPECIFIED"), ["a"]),
    (field("hp.opt", "contains", False, HP, "UNSPECIFIED"), []),
    (field("hp.opt", "notContains", "adam", HP, "UNSPECIFIED"), []),
    (field("hp.opt", "contains", "sg", HP, "TEXT"), []),
    (field("hp.opt", "notContains", "sg", HP, "TEXT"), ["a"]),
    (field("hp.opt", "=", "sgd", HP, "TEXT"), []),
    (field("hp.opt", "notEmpty", None, HP, "TEXT"), ["a"]),
    (field("hp.net.depth", "<=", 4, HP, "NUMBER"), ["a"]),
    (field("hp.net.depth", "contains", 4, HP, "NUMBER"), []),
    (field("hp.net.kind", "contains", "Res", HP, "TEXT"), ["a"]),
    (field("hp.net.kind", "contains", "res", HP, "TEXT"), []),
    # Groups.
    (group("and"), ALL),
    (group("or", group("and"), group("and")), ALL),
    (group("and", group("and"), field("description", "notEmpty")), ["a"]),
    (group("or", field("name", "=", "beta"), field("name", "=", "gamma")), ["b", "c"]),
    (group("and", field("name", "=", "beta"), field("name", "=", "gamma")), []),
    (
        group("or", field("state", "=", "PAUSED"), group("and", field("numTrials", "=", 1), field("name", ">", "f"))),
        ["b", "c"],
    ),
    (
        group(
            "or",
            field("name", "=", "beta"),
            field("name", "=", "nobody"),
            group("and", field("name", "=", "gamma"), field("name", "=", "beta")),
            group("or", field("name", "=", "gamma"), group("and", field("id", ">", 0), field("numTrials", "=", 2))),
        ),
        ["a", "b", "c"],
    ),
    (group("and", field("numTrials", ">", 0), field("id", "!=", 0), field("forkedFrom", "!=", 0)), ["b"]),
    (group("and", field("progress", "=", 100), field("checkpointCount", "=", 4), field("numTrials", "=", 1)), []),
    (group("or", group("and"), group("and"), group("and")), ALL),
]


SORTS = [
    ("", ALL),
    ("id=desc", ["c", "b", "a"]),
    ("name=asc", ["a", "b", "c"]),
    ("user=desc,id=desc", ["b", "c", "a"]),
    ("externalExperimentId=desc", ["b", "a", "c"]),
    ("progress=asc", ["c", "b", "a"]),
    ("numTrials=desc,startTime=desc", ["a", "b", "c"]),
    ("validation.accuracy.last=desc", ["a", "b", "c"]),
    ("validation.word.last=asc", ["a", "b", "c"]),
    ("hp.net.depth=desc", ["a", "b", "c"]),
    ("tags=asc", ["a", "b", "c"]),
    ("archived=desc", ["c", "a", "b"]),
    ("duration=asc", ["b", "c", "a"]),
    ("searcherMetricsVal=desc,forkedFrom=desc", ["a", "b", "c"]),
]


def nested(depth: int) -> dict[str, Any]:
    wanted: dict[str, Any] = group("or", field("id", ">", 0), field("hp.lr", ">", 0, HP))
    for position in range(depth - 1):
        wanted = group("and" if position % 2 else "or", wanted, field("numTrials", ">=", 0))
    return wanted


NESTED = '{"kind": "group", "conjunction": "and", "children": [' * 10_000
TEN_THOUSAND_DEEP = f'{{"filterGroup": {NESTED}{"]}" * 10_000}}}'

DIGITS = f'{{"filterGroup": {{"conjunction": "and", "children": [{json.dumps(field("id", "="))[:-5]}{"7" * 6000}}}]}}}}'

REFUSED: list[tuple[Any, str]] = [
    ("not json", "not JSON"),
    ("[" * 20_000, "32 deep"),
    (TEN_THOUSAND_DEEP, "32 deep"),
    ("[]", "expected an object"),
    ("{}", "filterGroup"),
    ('{"filterGroup": {"children": []}}', "conjunction"),
    ('{"filterGroup": {"conjunction": "invalid"}}', "conjunction"),
    ('{"filterGroup": {"conjunction": "and"}, "showArchived": 7}', "showArchived"),
    ('{"filterGroup": {"conjunction": "and", "children": {}}}', "children"),
    ('{"filterGroup": {"conjunction": "and", "children": [{"kind": "leaf"}]}}', "kind"),
    (group("and", {"kind": "field", "columnName": "id", "value": 1}), "column 'id': operator"),
    (field("id", "invalid", 1), "column 'id': operator"),
    (field("notValid", "=", 1), "column 'notValid'"),
    (field("archived", "=", 1), "column 'archived'"),
    (field("archived", "<", True), "column 'archived'"),
    (field("id", "=", "x"), "column 'id': value: expected a number"),
    (field("id", "=", True), "expected a number"),
    (field("id", "=", [1]), "column 'id': value"),
    (field("id", "=", "1e999"), "column 'id': value"),
    (field("checkpointSize", "=", 10**400), "range of doubles"),
    (DIGITS, "filter"),
    (field("startTime", ">", "yesterday"), "expected a time"),
    (field("startTime", ">", "0001-01-01T00:00:00+14:00"), "expected a time"),
    (field("name", "=", "a\0b"), "NUL"),
    (field("name", "=", 1, "NOWHERE"), "location"),
    (field("name", "=", 1, "EXPERIMENT", "ODD"), "type"),
    (field("loss", "=", 1, METRIC), "column 'loss': expected <group>"),
    (field("training.loss.median", "=", 1, "TRAINING"), "last|max|mean|min"),
    (field("hp.lr", "=", 1, RUNS_OWN), "column 'hp.lr'"),
    (field("id", "=", 1, "RUN"), "column 'id'"),
    (group("or", *(field("id", "=", 1) for _ in range(MOST_NODES))), f"more than {MOST_NODES}"),
    (nested(MOST_DEPTH + 1), "32 deep"),
]


SORTS_REFUSED = [
    ("id", "invalid sort parameter: id"),
    ("=asc", "invalid sort parameter: =asc"),
    ("id=up", "invalid sort direction: up"),
    ("nothing=asc", "invalid sort col: nothing"),
    ("metadata.n=asc", "invalid sort col: metadata.n"),
]
