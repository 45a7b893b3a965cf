"""Nothing twice, nothing lost, whatever order batches come in."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.events.logs import LogBatch, LogLine
from services.logs.lines.arrival import MAX_PARKED, Position, admit, arrive
from services.logs.lines.rows import in_order_of_time, searchable


def lines(first: int, end: int) -> tuple[LogLine, ...]:
    return tuple(LogLine(seq, seq, b"%d\n" % seq) for seq in range(first, end))


def batch(first: int, end: int, *, ends: bool = False, contiguous: bool = True) -> LogBatch:
    return LogBatch(
        task="t",
        stream="s",
        lines=lines(first, end),
        end_of_stream=ends,
        end_seq=end if ends else None,
        contiguous=contiguous,
    )


@pytest.mark.parametrize(
    ("position", "part", "after", "new"),
    [
        (Position(), (0, 3), Position(3), ((0, 3),)),
        (Position(3), (0, 3), Position(3), ()),
        (Position(3), (1, 5), Position(5), ((3, 5),)),
        (Position(3), (5, 7), Position(7, ((3, 5),)), ((5, 7),)),
        (Position(7, ((3, 5),)), (3, 5), Position(7), ((3, 5),)),
        (Position(7, ((3, 5),)), (0, 9), Position(9), ((3, 5), (7, 9))),
        (Position(9, ((2, 6),)), (3, 4), Position(9, ((2, 3), (4, 6))), ((3, 4),)),
        (Position(9, ((1, 2), (4, 6))), (5, 9), Position(9, ((1, 2), (4, 5))), ((5, 6),)),
        (Position(3), (3, 3), Position(3), ()),
        (Position(3), (5, 5), Position(5, ((3, 5),)), ()),
    ],
)
def test_only_what_is_new_is_admitted(
    position: Position, part: tuple[int, int], after: Position, new: tuple[tuple[int, int], ...]
) -> None:
    assert admit(position, part) == (after, new)


def test_a_batch_ahead_waits_for_its_predecessor() -> None:
    first = arrive(Position(), [batch(3, 5)])
    assert (first.lines, first.parked, first.position) == ((), (batch(3, 5),), Position())
    second = arrive(first.position, [batch(0, 3)], parked=first.parked)
    assert (second.lines, second.parked, second.position) == (lines(0, 5), (), Position(5))


def test_waiting_ends_and_the_missing_lines_are_taken_when_they_come() -> None:
    given_up = arrive(Position(), [], parked=[batch(3, 5)], overdue=True)
    assert (given_up.lines, given_up.position) == (lines(3, 5), Position(5, ((0, 3),)))
    late = arrive(given_up.position, [batch(0, 4)])
    assert (late.lines, late.position) == (lines(0, 3), Position(5))


def test_waiting_is_bounded() -> None:
    ahead = [batch(seq, seq + 1) for seq in range(2, 2 * MAX_PARKED + 4, 2)]
    found = arrive(Position(), ahead)
    assert len(found.parked) == MAX_PARKED
    assert found.lines == lines(2, 3)


def test_an_end_that_overtakes_lines_waits_for_them() -> None:
    early = arrive(Position(2), [batch(4, 4, ends=True)])
    assert not early.sealed
    assert early.parked
    complete = arrive(early.position, [batch(2, 4)], parked=early.parked)
    assert complete.sealed
    assert complete.lines == lines(2, 4)


def test_an_end_that_comes_again_changes_nothing() -> None:
    again = arrive(Position(4), [batch(2, 4, ends=True)])
    assert (again.lines, again.position, again.parked) == ((), Position(4), ())


def test_a_shipper_that_restarted_cuts_its_batches_anew() -> None:
    found = arrive(Position(2), [batch(0, 5), batch(4, 6)], parked=[batch(4, 5)])
    assert (found.lines, found.position, found.parked) == (lines(2, 6), Position(6), ())


def test_gaps_mean_nothing_in_streams_of_services() -> None:
    ahead = arrive(Position(), [batch(100, 101, contiguous=False)])
    assert ahead.lines == lines(100, 101)
    overtaken = arrive(ahead.position, [batch(50, 52, contiguous=False), batch(100, 101, contiguous=False)])
    assert overtaken.lines == lines(50, 52)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6)), max_size=20),
    st.randoms(use_true_random=False),
    st.booleans(),
)
def test_any_delivery_stores_each_line_once(
    parts: list[tuple[int, int]], dice: random.Random, contiguous: bool
) -> None:
    position, parked = Position(), tuple[LogBatch, ...]()
    stored: list[int] = []
    sent = [batch(first, first + count, contiguous=contiguous) for first, count in parts]
    for group in (dice.sample(sent, dice.randint(0, len(sent))) for _ in range(4)):
        found = arrive(position, group, parked=parked, overdue=dice.random() < 0.3)
        position, parked = found.position, found.parked
        stored += [line.seq for line in found.lines]
    found = arrive(position, dice.sample(sent, len(sent)), parked=parked, overdue=True)
    stored += [line.seq for line in found.lines]
    assert sorted(stored) == sorted({line.seq for each in sent for line in each.lines})
    assert not found.parked


@given(st.permutations(range(0, 40, 4)))
def test_a_complete_stream_is_in_order_however_it_came(firsts: list[int]) -> None:
    position, parked = Position(), tuple[LogBatch, ...]()
    stored: list[int] = []
    for first in firsts:
        found = arrive(position, [batch(first, first + 4)], parked=parked)
        position, parked = found.position, found.parked
        stored += [line.seq for line in found.lines]
    assert stored == list(range(40))


def test_streams_of_a_pod_interleave_by_time_and_keep_their_own_order() -> None:
    out = [LogLine(0, 10, b"a"), LogLine(1, 30, b"c"), LogLine(2, 20, b"d")]  # the clock stepped back
    err = [LogLine(0, 15, b"b"), LogLine(1, 40, b"e")]
    assert b"".join(line.log for line in in_order_of_time([out, err])) == b"abcde"


@pytest.mark.parametrize(
    ("log", "text"),
    [
        (b"plain\n", None),
        ("grüße\n".encode(), None),
        (b"a\x00b", "a\N{REPLACEMENT CHARACTER}b"),
        (b"a\xffb", "a\N{REPLACEMENT CHARACTER}b"),
    ],
)
def test_only_odd_lines_bring_their_own_text_for_searches(log: bytes, text: str | None) -> None:
    assert searchable(log) == text
