"""Fallback pools: how they are written, which a task may name, and what is different there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.cluster.config import ClusterConfig, PoolConfig
from libs.cluster.fallbacks import complete_fallbacks, names_of
from libs.config.differences import difference, overlaid
from libs.errors import InvalidRequest
from libs.shapes.fallback_pools import EXPECTED, fallback_pools

CLUSTER = ClusterConfig(
    resource_pools=(
        PoolConfig(pool_name="spot"),
        PoolConfig(pool_name="demand", fallback_wait="30m"),
        PoolConfig(pool_name="cloud"),
    )
)


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ([], []),
        (["demand"], [{"pool": "demand"}]),
        ([{"pool": "demand", "after": "1h30m"}, "cloud"], [{"pool": "demand", "after": 5400}, {"pool": "cloud"}]),
        ([{"pool": "demand", "after": 0}], [{"pool": "demand", "after": 0}]),
        ([{"pool": "demand", "after": "0s"}], [{"pool": "demand", "after": 0}]),
        ([{"pool": "demand", "after": 90.0}], [{"pool": "demand", "after": 90}]),
    ],
)
def test_what_may_be_written(written: list[Any], normal: list[Any]) -> None:
    read = fallback_pools(written, "resources.fallback_pools")
    assert (read.value, read.problems) == (normal, ())


@pytest.mark.parametrize(
    ("written", "path", "message"),
    [
        ("demand", "f", "expected array, but got string"),
        ([7], "f[0]", "expected string or object, but got integer"),
        ([{"after": 1}], "f[0]", "pool is a required property"),
        ([{"pool": "a", "wait": 1}], "f[0]", 'additionalProperties "wait" not allowed'),
        ([{"pool": "a", "after": "soon"}], "f[0].after", EXPECTED),
        ([{"pool": "a", "after": -1}], "f[0].after", "must be >= 0 but found -1"),
        ([{"pool": "a", "after": True}], "f[0].after", EXPECTED),
    ],
)
def test_what_may_not(written: Any, path: str, message: str) -> None:
    [problem] = fallback_pools(written, "f").problems
    assert (problem.path, message in problem.message) == (path, True), problem


def test_each_has_a_wait_in_the_end_and_its_own_pool_is_left_out() -> None:
    asked = [{"pool": "demand"}, {"pool": "spot", "after": 1}, {"pool": "cloud", "after": 7}]
    assert _complete(asked) == [{"pool": "demand", "after": 1800}, {"pool": "cloud", "after": 7}]
    assert _complete([{"pool": "cloud"}]) == [{"pool": "cloud", "after": 600}]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["demand", "demand"], "resources.fallback_pools[1]: resource pool demand is named twice"),
        (
            ["cloud", "nowhere"],
            "resources.fallback_pools[1]: resource pool nowhere does not exist or is not available to workspace ID 3",
        ),
        (["demand"] * 9, "resources.fallback_pools: at most 8 pools may be named, and 9 are"),
        (["bound"], "resources.fallback_pools[0]: resource pool bound does not exist or is not available to workspace"),
    ],
)
def test_what_is_refused(asked: list[str], said: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        _complete([{"pool": name} for name in asked])
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("stored", [None, "demand", [7, {}, {"pool": 1}, {"pool": "demand"}]])
def test_names_are_read_from_what_is_stored_whatever_it_is(stored: Any) -> None:
    assert list(names_of({"fallback_pools": stored})) == (["demand"] if isinstance(stored, list) else [])


_VALUES = st.recursive(st.none() | st.integers(0, 2), lambda each: st.lists(each, max_size=2), max_leaves=3)
_PART = st.fixed_dictionaries({"c": _VALUES}, optional={"d": _VALUES})
_DOCUMENTS = st.fixed_dictionaries({"a": _VALUES, "b": _PART}, optional={"e": _VALUES, "f": _PART})


@given(_DOCUMENTS, _DOCUMENTS)
def test_a_difference_put_over_one_version_is_the_other(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert _without_none(overlaid(one, difference(one, other))) == _without_none(other)
    assert difference(one, one) == {}


def test_what_only_one_version_has_is_none_in_the_other() -> None:
    one = {"environment": {"image": "a", "registry_auth": {"username": "u"}}, "extra": {"x": 1}}
    other = {"environment": {"image": "a"}}
    assert difference(one, other) == {"environment": {"registry_auth": None}, "extra": None}
    assert overlaid(one, difference(one, other))["environment"] == {"image": "a", "registry_auth": None}
    assert overlaid(other, difference(other, one)) == one


def _without_none(document: dict[str, Any]) -> dict[str, Any]:
    parts = {key: _without_none(value) if isinstance(value, dict) else value for key, value in document.items()}
    return {key: value for key, value in parts.items() if value is not None}


def _complete(asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return complete_fallbacks(CLUSTER, asked, pool="spot", workspace_id=3, unavailable={"bound"})
