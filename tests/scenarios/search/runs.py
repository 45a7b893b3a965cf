"""The search language over runs, one row per rule: docs/reference/platform.md 9.1, docs/reference/experiments.md 13.5.

Runs are those of ``tests/integration/api/search/conftest.py``, by name.
"""

from __future__ import annotations

from typing import Any

from tests.scenarios.search.nodes import field, group

ALL = ["a1", "a2", "b1", "c1"]
HP, META = "RUN_HYPERPARAMETERS", "RUN_METADATA"

FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    (field("experimentName", "contains", "alpha", "RUN"), ["a1", "a2"]),
    (field("experimentName", "contains", "alpha"), ["a1", "a2"]),
    (field("experimentName", "isEmpty", None, "RUN"), []),
    (field("experimentDescription", "isEmpty", None, "RUN"), ["b1", "c1"]),
    (field("tags", "contains", "PROD", "RUN"), ["a1", "a2"]),
    (field("searcherType", "=", "single", "RUN"), ["b1", "c1"]),
    (field("searcherMetric", "=", "accuracy", "RUN"), ["a1", "a2"]),
    (field("resourcePool", "=", "gpus", "RUN"), ["b1"]),
    (field("startTime", ">", "2030-01-01", "RUN"), ["b1"]),
    (field("endTime", "notEmpty", None, "RUN"), ["a1"]),
    (field("duration", "=", 30, "RUN"), ["a1"]),
    (field("state", "=", "ERROR", "RUN"), ["a2", "c1"]),
    (field("experimentProgress", ">=", 25, "RUN"), ["a1", "a2", "b1"]),
    (field("user", "=", 2, "RUN"), ["b1"]),
    (field("forkedFrom", "notEmpty", None, "RUN"), ["b1"]),
    (field("checkpointSize", "=", 7, "RUN"), ["a1"]),
    (field("checkpointCount", "=", 0, "RUN"), ALL),
    (field("searcherMetricsVal", ">", 0.5, "RUN"), ["a1"]),
    (field("externalExperimentId", "=", "outside", "RUN"), ["b1"]),
    (field("externalRunId", "=", "run-1", "RUN"), ["a1"]),
    (field("localId", "=", "SRCH-3", "RUN"), ["b1"]),
    (field("localId", "contains", "srch-", "RUN"), ALL),
    (field("isExpMultitrial", "=", True, "RUN"), ["a1", "a2"]),
    (field("isExpMultitrial", "!=", "true", "RUN"), ["b1", "c1"]),
    (field("parentArchived", "=", True, "RUN"), ["c1"]),
    # Metrics of the run itself.
    (field("validation.accuracy.last", "<", 0.5, "VALIDATIONS", "NUMBER"), ["a2"]),
    (field("training.loss.last", ">", 1, "TRAINING", "NUMBER"), ["a2"]),  # NaN is more than any number
    (field("training.loss.last", "notEmpty", None, "TRAINING", "NUMBER"), ["a1", "a2"]),
    # The search space of the experiment.
    (field("hp.opt", "contains", "adam", "HYPERPARAMETERS", "TEXT"), ["a1", "a2"]),
    # Hyperparameters of the run.
    (field("hp.lr", "<=", 1, HP, "NUMBER"), ["a1"]),
    (field("hp.lr", "!=", 1, HP, "NUMBER"), ["a2", "c1"]),
    (field("hp.lr", "isEmpty", None, HP, "NUMBER"), ["b1"]),
    (field("hp.lr", "notEmpty", None, HP, "NUMBER"), ["a1", "a2", "c1"]),
    (field("lr", "<=", 1, HP, "NUMBER"), ["a1"]),
    (field("net.in.ner", "=", 5, HP, "NUMBER"), ["a1"]),
    (field("archived", "=", True, "RUN"), ["a2"]),
    (field("archived", "!=", True, "RUN"), ["a1", "b1", "c1"]),
    (field("hp.opt", "contains", "apple", HP, "TEXT"), ["a1"]),
    (field("hp.opt", "contains", "Apple", HP, "TEXT"), []),
    (field("hp.opt", "notContains", "apple", HP, "TEXT"), ["a2", "c1"]),
    (field("hp.opt", "=", '["l", 1]', HP, "TEXT"), ["c1"]),
    (field("hp.net.depth", ">", 10**29, HP, "NUMBER"), ["a2"]),
    (field("hp.net.flag", "=", True, HP), ["a1"]),
    (field("hp.net", "notEmpty", None, HP), []),
    (field("hp.net.in.ner", "=", 5, HP, "NUMBER"), ["a1"]),
    (field("hp.in.ner", "notEmpty", None, HP, "NUMBER"), []),
    # Metadata of the run.
    (field("metadata.n", ">", 7.5, META, "NUMBER"), ["a2"]),
    (field("metadata.n", "!=", 7, META, "NUMBER"), ["a2"]),
    (field("metadata.n", "contains", 7, META, "NUMBER"), ["a1"]),
    (field("metadata.n", "contains", 8, META, "NUMBER"), []),  # 8.5 is another number
    (field("metadata.n", "notContains", 7, META, "NUMBER"), ["a2"]),
    (field("metadata.team", "contains", "Bl", META, "TEXT"), ["a1"]),
    (field("metadata.team", "notContains", "Bl", META, "TEXT"), ["a2"]),
    (field("metadata.team", "contains", "", META, "TEXT"), ["a1", "a2"]),
    (field("metadata.none", "contains", "null", META, "TEXT"), []),
    (field("metadata.team", "isEmpty", None, META, "TEXT"), ["b1", "c1"]),
    (field("metadata.day", ">=", "2024-02-29", META, "DATE"), ["a1"]),  # there is no 30th of February
    (field("metadata.flag", "=", False, META), ["a2"]),
    (field("metadata.tags", "=", "q", META, "TEXT"), ["a1"]),
    (field("metadata.tags", "!=", "q", META, "TEXT"), ["a2"]),
    (field("metadata.tags", "=", 3, META, "NUMBER"), ["a1"]),
    (field("metadata.in.ner", "=", "deep", META, "TEXT"), ["a1"]),
    (field("metadata.in", "isEmpty", None, META, "TEXT"), ALL),
    (group("or", field("id", "<", 0, "RUN"), group("and", field("state", "!=", "ERROR", "RUN"))), ["a1", "b1"]),
]


SORTS = [
    ("", ALL),
    ("id=desc", ["c1", "b1", "a2", "a1"]),
    ("archived=desc", ["a2", "a1", "b1", "c1"]),
    ("tags=desc", ["a1", "a2", "b1", "c1"]),
    ("experimentName=desc,localId=desc", ["c1", "b1", "a2", "a1"]),
    ("hp.lr=desc", ["a2", "a1", "c1", "b1"]),
    ("metadata.n=desc", ["a2", "a1", "b1", "c1"]),
    ("validation.accuracy.last=asc", ["a2", "a1", "b1", "c1"]),
    ("user=desc", ["b1", "a1", "a2", "c1"]),
]
