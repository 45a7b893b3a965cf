"""Time limits: how they are written, and what a pool makes of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.cluster.checks import check
from libs.cluster.config import ClusterConfig, PoolConfig
from libs.cluster.time_limits import limit_in_pool, with_time_limit
from libs.errors import InvalidRequest
from libs.shapes.time_limits import EXPECTED, limit_in_words, parse_time_limit, time_limit


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (1, 1),
        (5400, 5400),
        ("90s", 90),
        ("90m", 5400),
        ("12h", 43_200),
        ("1d12h", 129_600),
        ("1d2h3m4s", 93_784),
        (2**31 - 1, 2**31 - 1),
    ],
)
def test_what_is_a_time_limit(written: object, seconds: int) -> None:
    assert parse_time_limit(written) == seconds
    assert time_limit(written, "time_limit").value == seconds


@pytest.mark.parametrize(
    "written",
    ["", "90", "0s", "12 h", "12H", "1.5h", "-1h", "+1h", "1h1h", "30m1h", "1w", "h", "1d ", "99999999999s", "25000d"],
)
def test_texts_that_are_none(written: str) -> None:
    assert parse_time_limit(written) is None
    [problem] = time_limit(written, "resources.time_limit").problems
    assert (problem.path, problem.message) == ("resources.time_limit", EXPECTED)


@pytest.mark.parametrize("written", [0, -5, 2**31, 1.5, True, None, [], {}])
def test_values_that_are_none(written: Any) -> None:
    assert parse_time_limit(written) is None
    assert time_limit(written, "t").problems


@given(st.integers(1, 2**31 - 1))
def test_words_mean_the_seconds_that_they_were_made_from(seconds: int) -> None:
    assert parse_time_limit(limit_in_words(seconds)) == seconds


def cluster(**pool: Any) -> ClusterConfig:
    return ClusterConfig(resource_pools=(msgspec.convert({"pool_name": "default", **pool}, PoolConfig),))


@pytest.mark.parametrize(
    ("pool", "asked", "holds"),
    [
        ({}, None, None),
        ({}, 60, 60),
        ({"default_time_limit": "1h"}, None, 3600),
        ({"default_time_limit": "1h"}, 7200, 7200),
        ({"max_time_limit": "2h"}, None, 7200),
        ({"max_time_limit": 7200, "default_time_limit": 60}, None, 60),
        ({"max_time_limit": 7200}, 7200, 7200),
    ],
)
def test_the_limit_that_holds_in_a_pool(pool: dict[str, Any], asked: int | None, holds: int | None) -> None:
    assert limit_in_pool(cluster(**pool), "default", asked) == holds
    given_ = {} if asked is None else {"time_limit": asked}
    expected = {"slots": 1} if holds is None else {"slots": 1, "time_limit": holds}
    assert with_time_limit(cluster(**pool), "default", {"slots": 1, **given_}) == expected


def test_more_than_the_pool_allows_is_refused_with_both_limits() -> None:
    with pytest.raises(InvalidRequest) as refused:
        limit_in_pool(cluster(max_time_limit="8h"), "default", 43_200)
    assert str(refused.value) == (
        "resources.time_limit (12h) is above the limit of resource pool default (max_time_limit: 8h)"
    )


@pytest.mark.parametrize("name", ["default_time_limit", "max_time_limit"])
def test_a_pool_with_a_limit_that_is_none_does_not_load(name: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=f"{name}: must be whole seconds"):
        cluster(**{name: "soon"})


def test_a_default_above_the_maximum_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="pool default: default_time_limit must not be above max_time_limit"):
        check(cluster(default_time_limit="2h", max_time_limit="1h"))
