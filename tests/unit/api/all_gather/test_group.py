"""Who counts in an all-gather, and when it is complete (docs/reference/harness-protocol.md 12.1)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from services.api.all_gather.group import (
    Member,
    abandoned,
    answer_of,
    first_address,
    is_complete,
    is_slow,
    open_group,
)

START = datetime(2030, 1, 1, tzinfo=UTC)


def member(uuid: str, *, of: int = 2, joined_s: float = 0, seen_s: float | None = None, **more: Any) -> Member:
    return Member(
        request_uuid=uuid,
        holder=f"request of {uuid}",
        num_peers=of,
        data=more.pop("data", {}),
        joined_at=START + timedelta(seconds=joined_s),
        seen_at=START + timedelta(seconds=joined_s if seen_s is None else seen_s),
        **more,
    )


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_complete_when_all_are_there() -> None:
    assert not is_complete([])
    assert not is_complete([member("a")])
    assert is_complete([member("a"), member("b")])
    assert is_complete([member("a", of=1)])


def test_whoever_comes_after_a_complete_group_begins_the_next() -> None:
    done, late = member("a", gathered=[1, 2]), member("c")
    assert open_group([done, late]) == [late]
    assert answer_of([done, late], "a") == [1, 2]
    assert answer_of([done, late], "c") is None
    assert answer_of([done, late], "nobody") is None


def test_members_nobody_waits_for_are_abandoned_unless_complete() -> None:
    silent, waiting = member("a", of=3), member("b", of=3, seen_s=40)
    assert abandoned([silent, waiting], at(45)) == [silent]
    assert abandoned([silent, waiting], at(30)) == []
    assert abandoned([member("a"), member("b")], at(10_000)) == []


def test_slowness_is_told_once() -> None:
    assert not is_slow([member("a")], at(599))
    assert is_slow([member("a"), member("b", joined_s=500)], at(600))
    assert not is_slow([member("a", noted_at=at(600)), member("b", joined_s=500)], at(5000))


def test_rank_0_is_whose_uuid_sorts_first() -> None:
    peers = [member("9c", data={"rendezvous_ip": "10.0.0.3"}), member("2b", data={"rendezvous_ip": "10.0.0.2"})]
    assert first_address(peers) == "10.0.0.2"
    assert first_address([member("a", data={"ip": 1}), *peers[:1]]) == "10.0.0.3"
    assert first_address([member("1")]) is None
    assert first_address([member("1", data=[1])]) is None
