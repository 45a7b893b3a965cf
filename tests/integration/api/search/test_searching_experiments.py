"""The search language over experiments: each column, operator and location, sorts, pages, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.api.queries.search.language.filters import MOST_DEPTH, MOST_NODES
from tests.integration.api.search.conftest import Found, field, group

pytestmark = pytest.mark.asyncio(loop_scope="module")

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
    (field("hp.opt", "contains", "sgd", HP, "TEXT"), ["a"]),
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
]


@pytest.mark.parametrize(("wanted", "expected"), FILTERS, ids=lambda one: json.dumps(one)[:90])
async def test_a_filter_finds(found: Found, wanted: dict[str, Any], expected: list[str]) -> None:
    assert await found.search("experiments", wanted, archived=True) == expected


async def test_what_is_archived_or_being_deleted_is_out_of_sight(found: Found) -> None:
    assert await found.search("experiments", group("and")) == ["a", "b"]
    assert await found.search("experiments") == ALL
    only = field("id", "=", found.experiments["gone"])
    assert await found.search("experiments", only, archived=True) == []


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
    ("duration=asc", ["b", "c", "a"]),
    ("searcherMetricsVal=desc,forkedFrom=desc", ["a", "b", "c"]),
]


@pytest.mark.parametrize(("sort", "expected"), SORTS)
async def test_sorting(found: Found, sort: str, expected: list[str]) -> None:
    assert await found.search("experiments", sort=sort) == expected


async def test_pages_and_best_trials(found: Found) -> None:
    path, request = "/api/v1/experiments-search", found.request(None)
    page = await found.api.ok("POST", path, json={**request, "offset": 1, "limit": 1})
    assert page["pagination"] == {"offset": 1, "limit": 1, "startIndex": 1, "endIndex": 2, "total": 3}
    assert page["experiments"][0]["bestTrial"] is None
    first = (await found.api.ok("POST", path, json={**request, "limit": 1}))["experiments"][0]
    assert first["bestTrial"]["id"] == found.runs["a1"] == first["experiment"]["bestTrialId"]
    assert first["bestTrial"]["summaryMetrics"]["validation_metrics"]["accuracy"]["last"] == 0.9
    nothing = await found.api.ok("POST", path, json={**request, "projectId": found.empty_project})
    assert nothing["experiments"] == []
    everywhere = await found.api.ok("POST", path, json={"limit": -2})
    assert everywhere["pagination"]["total"] >= 3
    assert "'99999' not found" in await found.api.refused(404, "POST", path, json={"projectId": 99999})


def nested(depth: int) -> dict[str, Any]:
    wanted: dict[str, Any] = group("or", field("id", ">", 0), field("hp.lr", ">", 0, HP))
    for position in range(depth - 1):
        wanted = group("and" if position % 2 else "or", wanted, field("numTrials", ">=", 0))
    return wanted


async def test_as_deep_and_as_large_as_is_allowed(found: Found) -> None:
    assert await found.search("experiments", nested(MOST_DEPTH)) == ["a", "b"]
    many = group("or", *(field("hp.lr", "=", 0.1, HP, "NUMBER") for _ in range(MOST_NODES - 1)))
    assert await found.search("experiments", many) == ["a", "b"]


DIGITS = f'{{"filterGroup": {{"conjunction": "and", "children": [{json.dumps(field("id", "="))[:-5]}{"7" * 6000}}}]}}}}'

REFUSED: list[tuple[Any, str]] = [
    ("not json", "not JSON"),
    ("[" * 20_000, "32 deep"),
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
    (field("lr", "=", 1, HP), "column 'lr'"),
    (field("hp.lr", "=", 1, RUNS_OWN), "column 'hp.lr'"),
    (field("id", "=", 1, "RUN"), "column 'id'"),
    (group("or", *(field("id", "=", 1) for _ in range(MOST_NODES))), f"more than {MOST_NODES}"),
    (nested(MOST_DEPTH + 1), "32 deep"),
]


@pytest.mark.parametrize(("wanted", "text"), REFUSED, ids=range(len(REFUSED)))
async def test_what_makes_no_sense_is_refused_and_says_why(found: Found, wanted: Any, text: str) -> None:
    request = {"filter": wanted} if isinstance(wanted, str) else found.request(wanted)
    assert text in await found.api.refused(400, "POST", "/api/v1/experiments-search", json=request)


async def test_sorts_that_are_refused(found: Found) -> None:
    for sort, text in (
        ("id", "invalid sort parameter: id"),
        ("=asc", "invalid sort parameter: =asc"),
        ("id=up", "invalid sort direction: up"),
        ("tags=asc", "invalid sort col: tags"),
        ("nothing=asc", "invalid sort col: nothing"),
        ("metadata.n=asc", "invalid sort col: metadata.n"),
    ):
        assert await found.api.refused(400, "POST", "/api/v1/experiments-search", json={"sort": sort}) == text


async def test_a_filter_and_its_negation_share_out_those_that_have_a_value(found: Found) -> None:
    for column, value, location in (("name", "b", ""), ("forkedFrom", 5, ""), ("hp.net.kind", "Res", HP)):
        for one, other in (("=", "!="), ("<", ">="), (">", "<="), ("contains", "notContains")):
            halves = [await found.search("experiments", field(column, op, value, location), archived=True)
                      for op in (one, other)]  # fmt: skip
            have = await found.search("experiments", field(column, "notEmpty", None, location), archived=True)
            assert sorted(halves[0] + halves[1]) == have, (column, one)
