"""Sets of ids as ranges, against sets of ids; and what subscribers may say."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.errors import InvalidRequest
from services.api.updates.id_ranges import IdRanges
from services.api.updates.messages import UpdateKind, parse_startup

IDS = st.sets(st.integers(0, 40))


def ids_of(ranges: IdRanges) -> set[int]:
    return {ident for first, last in ranges.ranges() for ident in range(first, last + 1)}


def test_ranges_are_written_as_the_client_writes_them() -> None:
    assert str(IdRanges.of([1, 2, 3, 7])) == "1-3,7"
    assert str(IdRanges()) == ""
    assert str(IdRanges.parse("known", "1-3,7,10-12")) == "1-3,7,10-12"


@given(IDS, IDS, st.integers(0, 41))
def test_they_are_sets(some: set[int], others: set[int], one: int) -> None:
    ranges = IdRanges.of(sorted(some))
    assert ids_of(ranges) == some
    assert str(IdRanges.parse("known", str(ranges))) == str(ranges)
    assert (one in ranges) == (one in some)
    assert ids_of(ranges.without(IdRanges.of(sorted(others)))) == some - others
    ranges.add(one)
    assert str(ranges) == str(IdRanges.of(sorted(some | {one})))
    ranges.discard(one)
    assert str(ranges) == str(IdRanges.of(sorted(some - {one})))


def test_a_range_may_be_long_at_no_cost() -> None:
    began = time.process_time()
    left = IdRanges.parse("known", f"1-{2**63 - 1}").without(IdRanges.of([5]))
    assert str(left) == f"1-4,6-{2**63 - 1}"
    assert time.process_time() - began < 0.1


@pytest.mark.parametrize("text", ["3-1", "1,1", "2,1", "1-3,2", "x", "1-", "-1", "1,,2", "1 ,2", f"{2**63}", "\uff11"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"known\.projects"):
        IdRanges.parse("known.projects", text)


PROJECT = {"projects": {"project_ids": [1]}}
BAD = [
    (b"[", "startup message"),
    (b"\xff", "startup message"),
    ([], "startup message"),
    ({"sync_id": 1}, "sync_id"),
    ({"subscribe": {"projects": {}}}, "subscribe.projects"),
    ({"subscribe": {"projects": {"workspace_ids": []}}}, "subscribe.projects"),
    ({"subscribe": {"projects": {"user_ids": [1]}}}, "subscribe.projects"),
    ({"subscribe": {"trials": {}}}, "subscribe"),
    ({"subscribe": {"projects": {"project_ids": ["1"]}}}, "project_ids"),
    ({"subscribe": {"projects": {"project_ids": [2**63]}}}, "project_ids"),
    ({"subscribe": {"projects": {"project_ids": [-1]}}}, "project_ids"),
    ({"subscribe": {"projects": {"project_ids": list(range(10_001))}}}, "project_ids"),
    ({"subscribe": PROJECT, "known": {"projects": "2-1"}}, "known.projects"),
    ({"subscribe": PROJECT, "known": {"trials": "1"}}, "known"),
    ({"subscribe": PROJECT, "known": {"projects": 1}}, "known"),
]


@pytest.mark.parametrize(("message", "field"), BAD, ids=lambda value: str(value)[:60])
def test_a_bad_startup_message_names_the_field(message: object, field: str) -> None:
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    with pytest.raises(InvalidRequest, match=field):
        parse_startup(data)


def test_everything_in_a_startup_message_is_optional() -> None:
    assert parse_startup(b"{}").wanted == {}
    nulls = parse_startup(b'{"sync_id": "a", "known": {"models": null}, "subscribe": {"models": null}}')
    assert (nulls.sync_id, nulls.wanted) == ("a", {})


def test_versions_are_found_where_the_client_of_determined_puts_their_ids() -> None:
    startup = parse_startup(b'{"subscribe": {"modelversions": {"workspace_ids": [7], "since": 3}}}')
    wanted = startup.wanted[UpdateKind.MODEL_VERSIONS]
    assert (wanted.ids, wanted.since) == ({"workspace_ids": (7,)}, 3)
