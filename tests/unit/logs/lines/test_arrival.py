"""Nothing twice, nothing lost, whatever order batches come in."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.events.logs import LogBatch, LogLine
from services.logs.lines.arrival import SERVICE_GAPS, StreamPosition, admit, advance, advance_service, give_up
from services.logs.lines.notices import given_up_line
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
        (StreamPosition(), (0, 3), StreamPosition(3), ((0, 3),)),
        (StreamPosition(3), (0, 3), StreamPosition(3), ()),
        (StreamPosition(3), (1, 5), StreamPosition(5), ((3, 5),)),
        (StreamPosition(3), (5, 7), StreamPosition(7, ((3, 5),)), ((5, 7),)),
        (StreamPosition(7, ((3, 5),)), (3, 5), StreamPosition(7), ((3, 5),)),
        (StreamPosition(7, ((3, 5),)), (0, 9), StreamPosition(9), ((3, 5), (7, 9))),
        (StreamPosition(9, ((2, 6),)), (3, 4), StreamPosition(9, ((2, 3), (4, 6))), ((3, 4),)),
        (StreamPosition(9, ((1, 2), (4, 6))), (5, 9), StreamPosition(9, ((1, 2), (4, 5))), ((5, 6),)),
        (StreamPosition(3), (3, 3), StreamPosition(3), ()),
        (StreamPosition(3), (5, 5), StreamPosition(5, ((3, 5),)), ()),
    ],
)
def test_only_what_is_new_is_admitted(
    position: StreamPosition, part: tuple[int, int], after: StreamPosition, new: tuple[tuple[int, int], ...]
) -> None:
    found, parts = admit(position, part)
    assert (found.next_seq, found.missing, parts) == (after.next_seq, after.missing, new)


def test_a_batch_ahead_waits_for_its_predecessor() -> None:
    first = advance(StreamPosition(), [batch(3, 5)])
    assert (first.lines, first.ahead, first.position.next_seq) == ((), (batch(3, 5),), 0)
    assert first.position.waits
    second = advance(first.position, [batch(0, 3), *first.ahead])
    assert (second.lines, second.ahead, second.position.next_seq) == (lines(0, 5), (), 5)
    assert not second.position.waits


def test_what_was_given_up_is_remembered_and_taken_when_it_comes() -> None:
    given_up = advance(give_up(StreamPosition(), 3), [batch(3, 5)])
    assert (given_up.lines, given_up.position.missing) == (lines(3, 5), ((0, 3),))
    late = advance(given_up.position, [batch(0, 4)])
    assert (late.lines, late.position.next_seq, late.position.missing) == (lines(0, 3), 5, ())


def test_no_gap_is_ever_forgotten_however_many_there_are() -> None:
    position = StreamPosition()
    for seq in range(1, 1200, 2):
        position = advance(give_up(position, seq), [batch(seq, seq + 1)]).position
    assert len(position.missing) == 600
    late = random.Random(3).sample(range(0, 1200, 2), 600)
    stored: list[int] = []
    for seq in late:
        found = advance(position, [batch(seq, seq + 1)])
        position = found.position
        stored += [line.seq for line in found.lines]
    assert (stored, position.missing) == (late, ())


def test_an_end_that_overtakes_lines_waits_for_them() -> None:
    early = advance(StreamPosition(2), [batch(4, 4, ends=True)])
    assert early.position.waits
    assert not early.position.is_complete
    complete = advance(early.position, [batch(2, 4)])
    assert complete.position.is_complete
    assert complete.lines == lines(2, 4)


def test_a_stream_in_which_something_is_missing_is_not_complete_until_it_comes() -> None:
    ended = advance(give_up(StreamPosition(2), 4), [batch(4, 6, ends=True)])
    assert not ended.position.is_complete
    assert advance(ended.position, [batch(2, 4)]).position.is_complete


def test_an_end_that_comes_again_changes_nothing() -> None:
    ended = advance(StreamPosition(), [batch(0, 4, ends=True)])
    again = advance(ended.position, [batch(2, 4, ends=True)])
    assert (again.lines, again.position, again.ahead) == ((), ended.position, ())


def test_a_shipper_that_restarted_cuts_its_batches_anew() -> None:
    found = advance(StreamPosition(2), [batch(0, 5), batch(4, 6), batch(4, 5)])
    assert (found.lines, found.position.next_seq, found.ahead) == (lines(2, 6), 6, ())


def test_gaps_mean_nothing_in_streams_of_services() -> None:
    ahead = advance_service(StreamPosition(), [batch(100, 101, contiguous=False)])
    assert ahead.lines == lines(100, 101)
    overtaken = advance_service(ahead.position, [batch(50, 52, contiguous=False), batch(100, 101, contiguous=False)])
    assert overtaken.lines == lines(50, 52)


def test_streams_of_services_remember_their_last_gaps() -> None:
    position = StreamPosition()
    for seq in range(0, 4 * SERVICE_GAPS, 2):
        position = advance_service(position, [batch(seq, seq + 1, contiguous=False)]).position
    assert len(position.missing) == SERVICE_GAPS


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6)), max_size=20),
    st.randoms(use_true_random=False),
)
def test_any_delivery_stores_each_line_once(parts: list[tuple[int, int]], dice: random.Random) -> None:
    position, ahead = StreamPosition(), tuple[LogBatch, ...]()
    stored: list[int] = []
    sent = [batch(first, first + count) for first, count in parts]
    for group in (*(dice.sample(sent, dice.randint(0, len(sent))) for _ in range(4)), sent):
        found = advance(position, [*ahead, *group])
        position, ahead = found.position, found.ahead
        stored += [line.seq for line in found.lines]
        if ahead and dice.random() < 0.3:
            position = give_up(position, ahead[0].lines[0].seq)
    while ahead:
        found = advance(give_up(position, ahead[0].lines[0].seq), ahead)
        position, ahead = found.position, found.ahead
        stored += [line.seq for line in found.lines]
    assert sorted(stored) == sorted({line.seq for each in sent for line in each.lines})


@given(st.permutations(range(0, 40, 4)))
def test_a_complete_stream_is_in_order_however_it_came(firsts: list[int]) -> None:
    position, ahead = StreamPosition(), tuple[LogBatch, ...]()
    stored: list[int] = []
    for first in firsts:
        found = advance(position, [*ahead, batch(first, first + 4)])
        position, ahead = found.position, found.ahead
        stored += [line.seq for line in found.lines]
    assert stored == list(range(40))


def test_a_gap_that_is_given_up_is_named_with_its_numbers() -> None:
    line = given_up_line("1.a.1/pod-0/0/stderr", (7, 9), allocation="1.a.1", now_ns=5)
    assert (line.stdtype, line.container_id, line.allocation_id, line.level) == ("stderr", "pod-0", "1.a.1", "WARNING")
    assert line.log.startswith(b"2 lines of stderr, 7 to 8, have not arrived")
    assert given_up_line("1.a.1/p/0/stdout", (7, 8), allocation=None, now_ns=5).log.startswith(b"line 7 of stdout has")


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
