"""Every form in which fluent-bit sends a record, and everything that is none."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.capture.lines import encode_end, encode_line
from services.logs.lines.bodies import Shipped, Unreadable, records_of
from services.logs.lines.streams import UNPARSED, LineOrigin, batches_of

TIME = msgpack.ExtType(0, struct.pack(">II", 1_700_000_000, 5))
ORIGIN = LineOrigin(task="1.a", allocation="1.a.1", pod="pod-0", node="node-1", restart=2)
OUT = "/run/logs/stdout.0.log"


def record(log: str, **more: Any) -> dict[str, Any]:
    return {"path": OUT, "offset": 7, "log": log, **more}


def one(log: bytes, path: str = OUT, offset: int | None = 7) -> Shipped:
    return Shipped(log, path, offset)


def events(*records: Any, new: bool = True) -> bytes:
    return b"".join(msgpack.packb([[TIME, {}] if new else TIME, fields]) for fields in records)


FORMS: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    "msgpack": lambda records: events(*records),
    "msgpack of old": lambda records: events(*records, new=False),
    "msgpack with float time": lambda records: b"".join(msgpack.packb([1.5, fields]) for fields in records),
    "json": lambda records: json.dumps([{"date": 1.25, **fields} for fields in records]).encode(),
    "json_lines": lambda records: "\n".join(map(json.dumps, records)).encode(),
    "json_lines with a last newline": lambda records: "".join(json.dumps(fields) + "\n" for fields in records).encode(),
    "json_stream": lambda records: "".join(map(json.dumps, records)).encode(),
    "json_stream with spaces": lambda records: " ".join(map(json.dumps, records)).encode(),
    "json in an envelope": lambda records: json.dumps({"logs": records}).encode(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("logs", [["a"], ["a", "", 'b\x00\t"\\ é \U0001f600']], ids=["one", "several"])
def test_every_form_gives_the_same_records(form: str, logs: list[str]) -> None:
    body = FORMS[form]([record(log) for log in logs])
    assert list(records_of(body)) == [one(log.encode()) for log in logs]


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_msgpack_is_exact_to_the_byte(logs: list[bytes]) -> None:
    body = events(*({"path": OUT, "offset": 7, "log": log} for log in logs))
    assert list(records_of(body)) == [one(log) for log in logs]


def test_raw_bytes_in_old_msgpack_strings_survive() -> None:
    body = msgpack.packb([TIME, {b"log": b"\xff\x00", b"path": OUT.encode()}], use_bin_type=False)
    assert list(records_of(body)) == [one(b"\xff\x00", offset=None)]


def test_broken_utf8_in_json_survives() -> None:
    assert list(records_of(b'[{"path":"p","log":"a\xffb"}]')) == [one(b"a\xffb", "p", None)]


def test_lone_surrogates_in_json_do_no_harm() -> None:
    assert list(records_of(b'[{"path":"p","log":"a\\ud800"}]')) == [one(b"a?", "p", None)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", []),
        (b" \n", []),
        (b"hello", [Unreadable(b"hello")]),
        (b"\x00\xff", [Unreadable(b"\x00\xff")]),
        (b"[" * 100_000, [Unreadable(b"[" * 100_000)]),
        (b'{"log":"a"}{"log":', [one(b"a", "", None), Unreadable(b'{"log":')]),
        (b'{"x":1}\n{"log":"a"}', [Unreadable(b'{"x":1}'), one(b"a", "", None)]),
        (b'[{"log":5}]', [Unreadable(b'{"log": 5}')]),
        (b"[" + b"9" * 10_000 + b"]", [Unreadable(b"[" + b"9" * 10_000 + b"]")]),
        (events({"log": "a"}) + b"\x92", [one(b"a", "", None), Unreadable(b"\x92")]),
        (events({"log": "a"}) + b"\xc1xyz", [one(b"a", "", None), Unreadable(b"\xc1xyz")]),
        (b"\xdd\xff\xff\xff\xff", [Unreadable(b"\xdd\xff\xff\xff\xff")]),
        (b"\x91" * 5000, [Unreadable(b"\x91" * 5000)]),
    ],
    ids=range(13),
)
def test_what_is_no_record_comes_back_as_it_came(body: bytes, expected: list[Shipped | Unreadable]) -> None:
    assert list(records_of(body)) == expected


@given(st.binary(max_size=200))
def test_no_body_is_too_odd(body: bytes) -> None:
    for batch in batches_of(records_of(body), ORIGIN, body=body, now_ns=5):
        assert batch.stream.startswith("1.a.1/pod-0/2/")


def captured(seq: int, payload: bytes, path: str = OUT) -> Shipped:
    return one(encode_line(seq, 1000 + seq, payload)[:-1], path)


def ended(seq: int, path: str = OUT) -> Shipped:
    return one(encode_end(seq, 1000, 0)[:-1], path)


def shape(*records: Shipped | Unreadable) -> list[tuple[str, list[int], int | None]]:
    batches = batches_of(records, ORIGIN, body=b"body", now_ns=5)
    return [(batch.stream.split("/", 3)[3], [line.seq for line in batch.lines], batch.end_seq) for batch in batches]


ERR = OUT.replace("stdout", "stderr")


def test_streams_are_told_apart_and_sorted() -> None:
    second = OUT.replace(".0.", ".1.")
    assert shape(
        captured(2, b"c", second), captured(0, b"a"), captured(1, b"b"), captured(0, b"e", ERR), ended(1, ERR)
    ) == [("stdout", [0, 1, 2], None), ("stderr", [0], 1)]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([captured(0, b"a"), captured(2, b"c"), ended(3)], [("stdout", [0], None), ("stdout", [2], 3)]),
        ([captured(0, b"a"), ended(3)], [("stdout", [0], None), ("stdout", [], 3)]),
        ([ended(0)], [("stdout", [], 0)]),
        ([captured(4, b"a"), captured(4, b"a")], [("stdout", [4], None)]),
    ],
    ids=["gap", "end ahead", "nothing was written", "twice"],
)
def test_a_batch_has_no_gap_inside(records: list[Shipped], expected: list[tuple[str, list[int], int | None]]) -> None:
    assert shape(*records) == expected


def test_a_line_carries_who_where_and_when() -> None:
    (batch,) = batches_of([captured(3, b"[rank=1] INFO: \xffx\x00")], ORIGIN, body=b"", now_ns=5)
    assert (batch.task, batch.stream, batch.allocation) == ("1.a", "1.a.1/pod-0/2/stdout", "1.a.1")
    (line,) = batch.lines
    assert (line.seq, line.timestamp_ns, line.log, line.level, line.rank_id) == (3, 1003, b"\xffx\x00\n", "INFO", 1)
    assert (line.stdtype, line.agent_id, line.container_id, line.source) == ("stdout", "node-1", "pod-0", "task")


def test_lines_of_other_files_are_numbered_by_their_position() -> None:
    found = list(batches_of([one(b"x", "/other", 20), one(b"y", "/other", 3)], ORIGIN, body=b"", now_ns=5))
    assert [[(line.seq, line.log) for line in batch.lines] for batch in found] == [
        [(3, UNPARSED + b"y\n"), (20, UNPARSED + b"x\n")]
    ]
    assert not found[0].contiguous


WHOLE = encode_line(123, 1_700_000_000_000_000_000, b"step 5 7 of 9")[:-1]


@pytest.mark.parametrize("start", range(1, len(WHOLE)))
def test_a_piece_from_the_middle_of_a_capture_file_is_no_line(start: int) -> None:
    records = [one(WHOLE[start:], OUT, start), captured(124, b"next")]
    (batch,) = batches_of(records, ORIGIN, body=b"", now_ns=5)
    assert [(line.seq, line.log) for line in batch.lines] == [(124, b"next\n")]


@pytest.mark.parametrize("line", [encode_line(2**62, 1, b"x")[:-1], encode_line(1, 10**20 - 1, b"x")[:-1]])
def test_a_line_with_impossible_numbers_is_kept_with_a_mark(line: bytes) -> None:
    (batch,) = batches_of([one(line, OUT, 3)], ORIGIN, body=b"", now_ns=5)
    assert [kept.log for kept in batch.lines] == [UNPARSED + line + b"\n"]


def test_garbage_is_a_stream_of_its_own_that_a_repetition_finds_again() -> None:
    def streams(body: bytes) -> list[str]:
        return [batch.stream for batch in batches_of(records_of(body), ORIGIN, body=body, now_ns=5)]

    assert streams(b"hello\nworld") == streams(b"hello\nworld") != streams(b"hello\nworlds")
