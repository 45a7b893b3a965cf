"""What a line means: prefixes, levels, the printed text, records that clients post, and batches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.errors import InvalidRequest
from libs.events.logs import LogBatch, LogLine
from libs.loglines.batches import MAX_BATCH_BYTES, message_id, split_batches
from libs.loglines.cutting import MAX_LINE_BYTES, pieces, truncated
from libs.loglines.levels import level_of, wire_level
from libs.loglines.message import flat_message, moment_of, nanoseconds_of, readable, wire_time
from libs.loglines.posted import legacy_lines, posted_lines
from libs.loglines.prefixes import split_prefixes

NOW_NS = 1_700_000_000_123_456_789


@pytest.mark.parametrize(
    ("raw", "rank", "level", "log"),
    [
        (b"[rank=3] INFO: x", 3, "INFO", b"x"),
        (b" [rank=12]  WARNING: y", 12, "WARNING", b"y"),
        (b"INFO:root:hi", None, "INFO", b"root:hi"),
        (b"ERROR:  two", None, "ERROR", b" two"),
        (b"[2024] INFO: x", None, None, b"[2024] INFO: x"),
        (b"TRACE: x", None, None, b"TRACE: x"),
        (b"info: x", None, None, b"info: x"),
        (b"[rank=1] [rank=2] x", 1, None, b"[rank=2] x"),
        (b"", None, None, b""),
        (b"[rank=0]", 0, None, b""),
        (b"  INFO: two spaces", None, None, b"  INFO: two spaces"),
        (b"INFORMATION: x", None, None, b"INFORMATION: x"),
        (b"CRITICAL: \xff\x00", None, "CRITICAL", b"\xff\x00"),
        (b"[rank=2147483648] x", None, None, b"[rank=2147483648] x"),
        (b"[rank=" + b"9" * 5000 + b"] x", None, None, b"[rank=" + b"9" * 5000 + b"] x"),
        ("[rank=\u0663] x".encode(), None, None, "[rank=\u0663] x".encode()),
    ],
)
def test_prefixes_are_those_of_the_reference(raw: bytes, rank: int | None, level: str | None, log: bytes) -> None:
    assert split_prefixes(raw) == (rank, level, log)


@pytest.mark.parametrize(
    ("spelling", "level"),
    [
        ("LOG_LEVEL_INFO", "INFO"),
        ("ERROR", "ERROR"),
        (1, "TRACE"),
        (6, "CRITICAL"),
        (0, None),
        (7, None),
        (True, None),
        ("LOG_LEVEL_UNSPECIFIED", None),
        ("loud", None),
        (None, None),
    ],
)
def test_level_has_three_spellings(spelling: object, level: str | None) -> None:
    assert level_of(spelling) == level


def test_unknown_level_goes_out_as_unspecified() -> None:
    assert [wire_level("INFO"), wire_level(None), wire_level("loud")] == [
        "LOG_LEVEL_INFO",
        "LOG_LEVEL_UNSPECIFIED",
        "LOG_LEVEL_UNSPECIFIED",
    ]


TIME = datetime(2022, 3, 2, 2, 15, 18, 299569, tzinfo=UTC)


@pytest.mark.parametrize(
    ("timestamp", "container", "rank", "level", "message"),
    [
        (TIME, "f6114bb3-1234", 1, "INFO", "[2022-03-02T02:15:18.299569Z] f6114bb3 [rank=1] || INFO: hello\n"),
        (TIME, "f6114bb3-1234", None, None, "[2022-03-02T02:15:18.299569Z] f6114bb3 || hello\n"),
        (TIME, None, None, "ERROR", "[2022-03-02T02:15:18.299569Z]          || ERROR: hello\n"),
        (TIME.replace(microsecond=0), "", 0, None, "[2022-03-02T02:15:18.000000Z]          [rank=0] || hello\n"),
        (None, "abc", None, None, "[UNKNOWN TIME] abc || hello\n"),
        (TIME.astimezone(timezone(timedelta(hours=2))), "c", None, None, "[2022-03-02T02:15:18.299569Z] c || hello\n"),
    ],
)
def test_message_is_what_the_command_line_prints(
    timestamp: datetime | None, container: str | None, rank: int | None, level: str | None, message: str
) -> None:
    found = flat_message(timestamp=timestamp, container_id=container, rank_id=rank, level=level, log="hello\n")
    assert found == message


@pytest.mark.parametrize(
    ("microsecond", "text"),
    [(0, "2022-03-02T02:15:18Z"), (299000, "2022-03-02T02:15:18.299Z"), (1, "2022-03-02T02:15:18.000001Z")],
)
def test_wire_time_has_as_many_digits_as_it_needs(microsecond: int, text: str) -> None:
    assert wire_time(TIME.replace(microsecond=microsecond)) == text


def test_readable_keeps_nul_and_replaces_what_is_no_text() -> None:
    assert readable(b"a\x00b\xff") == "a\x00b\N{REPLACEMENT CHARACTER}"


@given(st.integers(min_value=-(2**60), max_value=2**62))
def test_time_survives_to_the_microsecond(timestamp_ns: int) -> None:
    assert nanoseconds_of(moment_of(timestamp_ns)) == timestamp_ns // 1000 * 1000


@given(st.binary(max_size=60) | st.text(max_size=30).map(str.encode), st.integers(min_value=4, max_value=9))
def test_pieces_concatenate_to_the_line_and_cut_no_character(log: bytes, limit: int) -> None:
    parts = list(pieces(log, limit))
    assert b"".join(parts) == log
    assert all(len(part) <= limit for part in parts)
    try:
        log.decode()
    except UnicodeDecodeError:
        return
    for part in parts:
        part.decode()


def test_truncation_says_how_much_is_gone() -> None:
    assert truncated(b"x" * 10, 10) == b"x" * 10
    assert truncated("ééé".encode(), 5) == "éé".encode() + b"... (2 bytes left out)\n"


def test_posted_records_become_lines_in_order() -> None:
    task, lines = posted_lines(
        [
            {
                "taskId": "1.a",
                "log": "one\n",
                "level": "LOG_LEVEL_INFO",
                "rankId": 3,
                "timestamp": "2022-03-02T02:15:18Z",
            },
            {
                "task_id": "1.a",
                "log": "tw\x00\n",
                "agent_id": "no\x00de",
                "allocation_id": "1.a.2",
                "stdtype": "stdout",
            },
        ],
        first_seq=7,
        now_ns=NOW_NS,
    )
    assert task == "1.a"
    assert lines == (
        LogLine(7, 1646187318 * 10**9, b"one\n", "INFO", 3),
        LogLine(8, NOW_NS, b"tw\x00\n", agent_id="node", allocation_id="1.a.2", stdtype="stdout"),
    )


@pytest.mark.parametrize(
    ("records", "complaint"),
    [
        ([], "len logs must be greater than 0"),
        ([{"taskId": "a", "id": "5"}], "ID must be nil on logs got 5 instead"),
        (
            [{"taskId": "a"}, {"taskId": "b"}],
            "can only post logs of a single taskID per task log request got 'a' and 'b'",
        ),
        ([{"taskId": "a", "timestamp": "yesterday"}], "must be RFC 3339"),
        ([{"taskId": "a", "timestamp": "9999-12-31T23:59:59Z"}], "must be between the years 1678 and 2261"),
        ([{"taskId": "a", "timestamp": "0001-01-01T00:00:00+14:00"}], "must be between the years 1678 and 2261"),
    ],
)
def test_posted_records_are_refused_in_the_words_of_the_reference(
    records: list[dict[str, object]], complaint: str
) -> None:
    with pytest.raises(InvalidRequest, match=complaint):
        posted_lines(records, first_seq=0, now_ns=NOW_NS)


def test_a_posted_line_that_is_too_long_becomes_several() -> None:
    log = "é" * MAX_LINE_BYTES
    _, lines = posted_lines([{"taskId": "a", "log": log}, {"taskId": "a", "log": "x"}], first_seq=0, now_ns=0)
    assert b"".join(line.log for line in lines) == log.encode() + b"x"
    assert [line.seq for line in lines] == list(range(len(lines)))


@pytest.mark.parametrize(
    "odd",
    [
        None,
        5,
        "text",
        [1, None, []],
        {"log": "no task"},
        [{"task_id": ["x"], "log": {}}],
        [{"task_id": "t", "rank": "two", "timestamp": 5, "level": {}, "log": None}],
        [{"task_id": "t\ud800", "log": "\ud800"}],
        [{"task_id": "t", "log": "x", "timestamp": "9999-12-31T23:59:59Z"}],
    ],
)
def test_legacy_post_never_fails(odd: object) -> None:
    for lines in legacy_lines(odd, first_seq=0, now_ns=NOW_NS).values():
        for line in lines:
            msgspec.msgpack.encode(line)


def test_legacy_post_keeps_the_rank_of_unmanaged_trials() -> None:
    records = [
        {"task_id": "t", "timestamp": "2024-01-01T00:00:00+00:00", "rank": "2", "log": "a\n"},
        {"task_id": "u", "log": "b\n"},
        {"task_id": "t", "log": "c\n"},
    ]
    found = legacy_lines(records, first_seq=10, now_ns=NOW_NS)
    assert [(line.seq, line.rank_id, line.log) for line in found["t"]] == [(10, 2, b"a\n"), (12, None, b"c\n")]
    assert [line.seq for line in found["u"]] == [11]


@given(st.lists(st.integers(min_value=0, max_value=200_000), max_size=30), st.booleans())
def test_batches_carry_every_line_once_and_fit_into_a_message(sizes: list[int], ends: bool) -> None:
    lines = [
        LogLine(seq, NOW_NS, b"x" * size, "INFO", 1, "stdout", "n" * 60, "p" * 60) for seq, size in enumerate(sizes)
    ]
    batches = list(split_batches("t", "s", lines, allocation="a", end_seq=len(lines) if ends else None))
    assert [line for batch in batches for line in batch.lines] == lines
    assert [batch.end_of_stream for batch in batches] == [False] * (len(batches) - 1) + [ends] * bool(batches)
    assert ends <= bool(batches)
    assert all(len(msgspec.msgpack.encode(batch)) < 1_000_000 for batch in batches)
    assert all(sum(len(line.log) for line in batch.lines[:-1]) <= MAX_BATCH_BYTES for batch in batches)


def test_message_id_differs_when_a_batch_grew() -> None:
    def ident(count: int, ends: bool = False) -> str:
        lines = tuple(LogLine(seq, 0, b"") for seq in range(count))
        return message_id(LogBatch(task="t", stream="s", lines=lines, end_of_stream=ends, end_seq=count))

    assert len({ident(0, True), ident(1), ident(2), ident(2, True)}) == 4
    assert ident(2) == ident(2)
