"""A filter and its negation split the rows that have the column, whatever the column and the value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libs.errors import InvalidRequest
from libs.ids import UserId
from services.api.access.principal import Principal
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.search.runs.searches import select_run_ids
from tests.integration.api.search.conftest import Found
from tests.scenarios.search.columns import COLUMNS
from tests.scenarios.search.nodes import field, group

pytestmark = pytest.mark.asyncio(loop_scope="module")

EVERYBODY: Any = {"rights": UserRights(Principal(user_id=UserId(1), username="admin")), "right": Action.VIEW_EXPERIMENT}
ORDERED = [("=", "!="), ("<", ">="), (">", "<="), ("contains", "notContains")]
EQUAL = [("=", "!="), ("contains", "notContains")]
FIXED = [(column.name, "RUN", "", ORDERED) for column in COLUMNS if column.filters_runs]
METRICS = [
    ("validation.accuracy.mean", "VALIDATIONS", "NUMBER", ORDERED),
    ("training.loss.last", "TRAINING", "NUMBER", ORDERED),
    ("validation.word.last", "VALIDATIONS", "TEXT", ORDERED),
]
OF_RUNS = [
    (name, location, kind, EQUAL)
    for location, names in (
        ("RUN_HYPERPARAMETERS", ("hp.lr", "hp.opt", "hp.net.depth", "hp.net.flag", "hp.none")),
        ("RUN_METADATA", ("metadata.team", "metadata.n", "metadata.tags", "metadata.in.ner", "metadata.none")),
    )
    for name in names
    for kind in ("NUMBER", "TEXT")
]
DEFINED = [
    ("hp.net.kind", "HYPERPARAMETERS", "TEXT", ORDERED),
    ("hp.opt", "HYPERPARAMETERS", "TEXT", [("contains", "notContains")]),
]
VALUES = st.one_of(
    st.integers(-3, 12),
    st.floats(-10, 10),
    st.booleans(),
    st.sampled_from(
        ["", "a", "Alpha", "apple", "Blue", "prod", "COMPLETED", "gpus", "SRCH-1", "SRCH-2", "q", "[]", "sgd"]
    ),
    st.sampled_from(["2030-01-01", "2030-01-02T00:00:00Z", "2024-02"]),
    st.text(max_size=3),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    column=st.sampled_from([*FIXED, *METRICS, *OF_RUNS, *DEFINED]), value=VALUES, other=VALUES, pair=st.integers(0, 3)
)
async def test_a_filter_and_its_negation_split_the_rows_that_have_the_column(
    found: Found, column: tuple[str, str, str, list[tuple[str, str]]], value: Any, other: Any, pair: int
) -> None:
    name, location, kind, pairs = column
    positive, negative = pairs[pair % len(pairs)]

    async def hits(operator: str, wanted: Any = None) -> set[int] | None:
        """None when it is refused."""
        root = group("and", field(name, operator, wanted, location, kind))
        text = json.dumps({"filterGroup": root, "showArchived": True})
        async with found.api.app.db.read() as connection:
            try:
                return set(await select_run_ids(connection, text, found.project, **EVERYBODY))
            except InvalidRequest:
                return None

    async def halves(wanted: Any) -> set[int] | None:
        one, rest = await hits(positive, wanted), await hits(negative, wanted)
        assert (one is None) == (rest is None)
        if one is None or rest is None:
            return None
        assert not one & rest
        return one | rest

    with_it, without = await hits("notEmpty"), await hits("isEmpty")
    assert with_it is not None
    assert without is not None
    assert not with_it & without
    assert with_it | without == set(found.runs.values())
    both = await halves(value)
    if both is not None:
        assert both >= with_it
        assert await halves(other) in (None, both), "which rows have it does not depend on the value"
