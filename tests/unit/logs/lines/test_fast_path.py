"""The short way through a body and the long one come to the same batches."""

from __future__ import annotations

import struct
from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.capture.lines import encode_end, encode_line
from libs.events.logs import LogBatch
from libs.loglines.cutting import MAX_LINE_BYTES
from services.logs.lines.bodies import records_of
from services.logs.lines.fast_path import fast_path_batches
from services.logs.lines.streams import LineOrigin, batches_of

TIME = msgpack.ExtType(0, struct.pack(">II", 1_700_000_000, 5))
ORIGIN = LineOrigin(task="1.a", allocation="1.a.1", pod="pod-0", node="node-1", restart=2)
OUT, ERR = "/run/logs/stdout.0.log", "/run/logs/stderr.3.log"


def body_of(*records: dict[str, Any] | bytes) -> bytes:
    return b"".join(
        fields if isinstance(fields, bytes) else msgpack.packb([[TIME, {}], fields], use_bin_type=False)
        for fields in records
    )


def line(seq: int, payload: bytes, path: str = OUT) -> dict[str, Any]:
    return {"path": path, "offset": 7, "log": encode_line(seq, 1_700_000_000_000_000_000 + seq, payload)[:-1]}


def end(seq: int, path: str = OUT) -> dict[str, Any]:
    return {"path": path, "log": encode_end(seq, 1000, 0)[:-1]}


def the_long_way(body: bytes) -> list[LogBatch]:
    return list(batches_of(records_of(body), ORIGIN, body=body, now_ns=5))


@pytest.mark.parametrize(
    "records",
    [
        [],
        [line(0, b"INFO: \xff\x00"), line(1, b"[rank=3] ERROR: x"), line(2, b"")],
        [line(0, b" [rank=2147483647]  WARNING:  y"), line(1, b"[rank=00000000000] INFO: x"), line(2, b"[rank=] z")],
        [line(4, b"a"), line(0, b"e", ERR), line(5, b"b"), end(1, ERR), end(6)],
        [line(9, b"late"), line(2, b"early"), line(2, b"early"), end(11)],
        [line(number, b"z" * 8191) for number in range(200)],
    ],
    ids=["nothing", "prefixes", "odd prefixes", "two outputs", "gaps", "several batches"],
)
def test_what_wrappers_write_goes_the_short_way(records: list[dict[str, Any]]) -> None:
    body = body_of(*records)
    batches = fast_path_batches(body, ORIGIN)
    assert batches is not None
    assert list(batches) == the_long_way(body)


@pytest.mark.parametrize(
    "record",
    [
        b"\xc1",
        msgpack.packb([1, 2, 3]),
        msgpack.packb({"log": 1, "path": 2}),
        b'{"log": "x"}',
        body_of(line(1, b"torn"))[:-3],
        {"path": OUT},
        {"log": line(1, b"x")["log"]},
        line(1, b"x", "/other"),
        {**line(1, b"x"), "log": line(1, b"x")["log"] + b"\n"},
        {**line(1, b"x"), "log": line(1, b"x")["log"][3:]},
        {**line(1, b"xy"), "log": line(1, b"xy")["log"][:-1]},
        {"path": OUT, "log": b"torn"},
        line(1, b"a\nb"),
        {"path": OUT, "log": 5},
        {"path": OUT, "log": encode_line(1, 9999999999999999999, b"x")[:-1]},
        line(10**18, b"x"),
        line(1, b"[rank=2147483648] x"),
        line(1, b"x" * (MAX_LINE_BYTES + 1)),
    ],
    ids=str,
)
def test_whatever_is_odd_sends_the_whole_body_the_long_way(record: dict[str, Any] | bytes) -> None:
    assert fast_path_batches(body_of(line(0, b"fine"), record), ORIGIN) is None


PREFIXED = st.builds(
    bytes.__add__,
    st.sampled_from([b"", b" ", b"[rank=1]", b" [rank=1] ", b"[rank=4294967296]", b"INFO:", b" DEBUG: ", b"INFO"]),
    st.sampled_from([b"", b"[rank=2] ", b"ERROR: ", b" CRITICAL:", b"x"]),
)
PAYLOADS = st.builds(bytes.__add__, PREFIXED, st.binary(max_size=8).map(lambda data: data.replace(b"\n", b"")))
RECORDS = st.one_of(
    st.builds(line, st.integers(0, 6), PAYLOADS, st.sampled_from([OUT, ERR])),
    st.builds(end, st.integers(0, 6), st.sampled_from([OUT, ERR])),
    st.builds(lambda log: {"path": OUT, "offset": 3, "log": log}, st.binary(max_size=12)),
)


@given(st.lists(RECORDS, max_size=6))
def test_both_ways_agree(records: list[dict[str, Any]]) -> None:
    body = body_of(*records)
    batches = fast_path_batches(body, ORIGIN)
    if batches is not None:
        assert list(batches) == the_long_way(body)
