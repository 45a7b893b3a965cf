"""The shipper's reading and packing; delivery itself is in the integration tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.capture.lines import encode_end, encode_line
from services.launcher.files.ship import IntakeClient, Line, ReadPosition, gzip, open_wake, pack, read_stream
from services.logs.lines.bodies import Shipped, records_of

START = ReadPosition(0, 0, False)


def segment(directory: Path, number: int, *records: bytes) -> None:
    (directory / f"stdout.{number}.log").write_bytes(b"".join(records))


def lines(numbers: range) -> list[bytes]:
    return [encode_line(number, 1, b"line %d" % number) for number in numbers]


def logs(read: list[Line]) -> list[bytes]:
    return [line.log + b"\n" for line in read]


@given(
    st.lists(st.tuples(st.text(max_size=300), st.integers(0, 2**61), st.binary(max_size=70_000)), max_size=3),
    st.integers(0, 2**62),
)
def test_intake_reads_what_is_packed(records: list[tuple[str, int, bytes]], now_ns: int) -> None:
    body = b"".join(pack(Line(path, offset, log), now_ns % (2**32 * 10**9)) for path, offset, log in records)
    read = [record for record in records_of(body) if isinstance(record, Shipped)]
    assert [(record.path, record.offset, bytes(record.log)) for record in read] == records


def test_nothing_is_there_yet(tmp_path: Path) -> None:
    assert read_stream(str(tmp_path), "stdout", START, 1000) == ([], START)


def test_only_whole_records_are_read(tmp_path: Path) -> None:
    whole = lines(range(2))
    segment(tmp_path, 0, *whole, encode_line(2, 1, b"torn no more")[:-6])
    read, position = read_stream(str(tmp_path), "stdout", START, 1000)
    assert logs(read) == whole
    assert position == ReadPosition(0, len(b"".join(whole)), False)
    assert [line.offset for line in read] == [0, len(whole[0])]
    segment(tmp_path, 0, *whole, encode_line(2, 1, b"torn no more"))
    assert logs(read_stream(str(tmp_path), "stdout", position, 1000)[0]) == [encode_line(2, 1, b"torn no more")]


def test_reading_goes_on_in_the_next_segment_and_stops_at_the_end(tmp_path: Path) -> None:
    first, second, end = lines(range(2)), lines(range(2, 4)), encode_end(4, 1, 0)
    segment(tmp_path, 0, *first)
    segment(tmp_path, 1, *second, end)
    read, position = read_stream(str(tmp_path), "stdout", START, 1000)
    assert logs(read) == [*first, *second, end]
    assert position.ended
    assert read_stream(str(tmp_path), "stdout", position, 1000) == ([], position)


def test_amount_is_limited_and_nothing_is_left_out(tmp_path: Path) -> None:
    written = [*lines(range(500)), encode_end(500, 1, 0)]
    segment(tmp_path, 0, *written[:250])
    segment(tmp_path, 1, *written[250:])
    got: list[bytes] = []
    position = START
    while not position.ended:
        read, position = read_stream(str(tmp_path), "stdout", position, 1000)
        assert 0 < sum(map(len, logs(read))) <= 1000
        got += logs(read)
    assert got == written


def test_segments_that_were_dropped_are_passed_over(tmp_path: Path) -> None:
    segment(tmp_path, 5, *lines(range(2)))
    read, position = read_stream(str(tmp_path), "stdout", START, 1000)
    assert len(read) == 2
    assert position.segment == 5


def test_links_and_pipes_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"".join(lines(range(2))))
    (tmp_path / "stdout.0.log").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "stdout.1.log")
    assert read_stream(str(tmp_path), "stdout", START, 1000)[0] == []


def test_only_a_pipe_wakes(tmp_path: Path) -> None:
    wake = tmp_path / "wake"
    assert open_wake(str(tmp_path)) == -1
    (tmp_path / "other").touch()
    wake.symlink_to(tmp_path / "other")
    assert open_wake(str(tmp_path)) == -1
    wake.unlink()
    wake.touch()
    assert open_wake(str(tmp_path)) == -1
    wake.unlink()
    os.mkfifo(wake)
    fd = open_wake(str(tmp_path))
    assert fd >= 0
    os.close(fd)


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("http://logs:8090", "logs", 8090, "/ingest/v1/logs"),
        ("http://logs", "logs", 80, "/ingest/v1/logs"),
        ("https://logs.example.com/", "logs.example.com", 443, "/ingest/v1/logs"),
        ("https://h:8443/behind/a/proxy/", "h", 8443, "/behind/a/proxy/ingest/v1/logs"),
        ("http://[::1]:8090", "::1", 8090, "/ingest/v1/logs"),
        ("http://[::1]", "::1", 80, "/ingest/v1/logs"),
    ],
)
def test_url_of_the_intake(url: str, host: str, port: int, path: str) -> None:
    intake = IntakeClient(url, [], "", "")
    assert (intake.host, intake.port, intake.path) == (host, port, path)


def test_body_is_gzip() -> None:
    import gzip as standard

    assert standard.decompress(gzip(b"lines")) == b"lines"
