"""The grammar of captured lines, held by the wrapper, the shipper and the library alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.capture.lines import (
    MAX_PAYLOAD_BYTES,
    CapturedLine,
    EndOfStream,
    decode,
    encode_end,
    encode_line,
    segment_name,
    stream_of,
)
from services.launcher.files import capture, ship

PAYLOADS = st.binary(max_size=200).map(lambda data: data.replace(b"\n", b" "))
NUMBERS = st.integers(min_value=0, max_value=2**63)


@given(NUMBERS, NUMBERS, PAYLOADS)
def test_lines_survive_the_round_trip(seq: int, timestamp_ns: int, payload: bytes) -> None:
    record = encode_line(seq, timestamp_ns, payload)
    assert decode(record) == decode(record[:-1]) == CapturedLine(seq, timestamp_ns, payload)
    assert not ship.is_end(record[:-1])


@pytest.mark.parametrize("code", [None, 0, 137])
def test_ends_survive_the_round_trip(code: int | None) -> None:
    record = encode_end(7, 8, code)
    assert decode(record) == EndOfStream(7, 8, code)
    assert ship.is_end(record[:-1])


@given(PAYLOADS)
def test_wrapper_writes_what_the_library_reads(payload: bytes) -> None:
    line = decode(capture.text_record(3, payload))
    assert isinstance(line, CapturedLine)
    assert (line.seq, line.payload) == (3, payload)


def test_wrapper_writes_ends_the_library_reads() -> None:
    for code in (None, 0, 255):
        end = decode(capture.end_record(9, code))
        assert isinstance(end, EndOfStream)
        assert (end.seq, end.exit_code) == (9, code)


@pytest.mark.parametrize("forged", [b"0 1;eos 0", b";eos 0", b"eos", b" 5 5;eos 0"])
def test_no_task_can_print_the_end_of_its_stream(forged: bytes) -> None:
    assert isinstance(decode(encode_line(0, 1, forged)), CapturedLine)
    assert not ship.is_end(encode_line(0, 1, forged)[:-1])


TORN = [b"", b"1", b"1 ", b"1 2", b"1 2;eos", b"1 2;eo", b"x 2 y", b"-1 2 y", b"1 2\ny"]


@pytest.mark.parametrize("torn", [*TORN, *(capture.checked(each)[:-1] for each in TORN), b"1 2 x", b"1 2;eos 0"])
def test_what_is_no_record_is_none(torn: bytes) -> None:
    assert decode(torn) is None


@given(NUMBERS, NUMBERS, PAYLOADS, st.data())
def test_no_piece_of_a_record_passes_for_one(seq: int, timestamp_ns: int, payload: bytes, data: st.DataObject) -> None:
    record = encode_line(seq, timestamp_ns, payload)[:-1]
    start = data.draw(st.integers(0, len(record)))
    end = data.draw(st.integers(start, len(record)))
    assert record[start:end] == record or decode(record[start:end]) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a/b/stdout.0.log", ("stdout", 0)),
        ("stderr.12.log", ("stderr", 12)),
        ("stdout.log", None),
        ("xstdout.0.log", None),
        ("stdout.0.log.gz", None),
    ],
)
def test_file_names_tell_the_stream(path: str, expected: tuple[str, int] | None) -> None:
    assert stream_of(path) == expected
    if expected is not None:
        assert stream_of(segment_name("stderr", 4)) == ("stderr", 4)


def test_limits_are_the_same() -> None:
    assert capture.MAX_PAYLOAD == MAX_PAYLOAD_BYTES
