"""Which reads the golden answers are of."""

from __future__ import annotations

from collections.abc import Sequence

from services.api.routes.table import all_routes
from tests.golden.parameters import ALWAYS, IN_PATHS, IN_QUERIES, LEFT_OUT
from tests.golden.reads import gets, parameters_of

VALUES = {name: ["1", "2", "3", "4"] for name in IN_PATHS}


def test_every_parameter_of_a_path_has_a_value() -> None:
    """A new route would otherwise end the comparison."""
    assert len(list(gets(VALUES))) > 1000


def test_every_parameter_of_a_query_is_tried_or_left_out() -> None:
    assert {name for name, tried in parameters().items() if not tried} == LEFT_OUT & set(parameters())


def test_what_is_said_of_parameters_and_paths_is_about_ones_that_there_are() -> None:
    assert set(ALWAYS) - {route.path for route in all_routes() if route.method == "GET"} == set()
    assert (set(IN_QUERIES) | LEFT_OUT) - set(parameters()) == set()


def parameters() -> dict[str, Sequence[str]]:
    """Of all GETs: the values that are tried, by the name."""
    queries = [route.query for route in all_routes() if route.method == "GET" and route.query is not None]
    return {name.rpartition(".")[2]: tried for query in queries for name, tried in parameters_of(query)}


def test_reads_are_the_same_each_time() -> None:
    assert list(gets(VALUES)) == list(gets(VALUES))
