"""The search language over experiments: each column, operator and location, sorts, pages, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.api.queries.search.language.filters import MOST_DEPTH, MOST_NODES
from tests.integration.api.search.conftest import Found
from tests.scenarios.search.experiments import ALL, FILTERS, HP, REFUSED, SORTS, SORTS_REFUSED, nested
from tests.scenarios.search.nodes import field, group

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(("wanted", "expected"), FILTERS, ids=lambda one: json.dumps(one)[:90])
async def test_a_filter_finds(found: Found, wanted: dict[str, Any], expected: list[str]) -> None:
    assert await found.search("experiments", wanted, archived=True) == expected


async def test_what_is_archived_or_being_deleted_is_out_of_sight(found: Found) -> None:
    assert await found.search("experiments", group("and")) == ["a", "b"]
    assert await found.search("experiments") == ALL
    only = field("id", "=", found.experiments["gone"])
    assert await found.search("experiments", only, archived=True) == []


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
    listed = await found.api.ok("GET", f"/api/v1/experiments?experimentIdFilter.incl={found.experiments['a']}")
    for shown in (first["experiment"], listed["experiments"][0]):
        assert shown["externalTrialId"] == "run-1", "that of the best trial"
    nothing = await found.api.ok("POST", path, json={**request, "projectId": found.empty_project})
    assert nothing["experiments"] == []
    everywhere = await found.api.ok("POST", path, json={"limit": -2})
    assert everywhere["pagination"]["total"] >= 3
    assert "'99999' not found" in await found.api.refused(404, "POST", path, json={"projectId": 99999})


async def test_as_deep_and_as_large_as_is_allowed(found: Found) -> None:
    assert await found.search("experiments", nested(MOST_DEPTH)) == ["a", "b"]
    many = group("or", *(field("hp.lr", "=", 0.1, HP, "NUMBER") for _ in range(MOST_NODES - 1)))
    assert await found.search("experiments", many) == ["a", "b"]


@pytest.mark.parametrize(("wanted", "text"), REFUSED, ids=range(len(REFUSED)))
async def test_what_makes_no_sense_is_refused_and_says_why(found: Found, wanted: Any, text: str) -> None:
    request = {"filter": wanted} if isinstance(wanted, str) else found.request(wanted)
    assert text in await found.api.refused(400, "POST", "/api/v1/experiments-search", json=request)


async def test_sorts_that_are_refused(found: Found) -> None:
    for sort, text in SORTS_REFUSED:
        assert await found.api.refused(400, "POST", "/api/v1/experiments-search", json={"sort": sort}) == text
