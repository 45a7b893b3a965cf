"""Lines of a log on a disk that is full for a while: each whole, in order, and those that are lost are counted."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from libs.service_log.line_handler import WAITING
from libs.telemetry import TelemetrySettings, configure_logging
from tests.harness.full_disk import SmallDisk, small_disk

pytestmark = pytest.mark.usefixtures("loggers")

EXTRA = 30


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path, size_mb=1) as made:
        yield made


def test_lines_wait_for_space_and_the_oldest_of_too_many_are_counted(disk: SmallDisk) -> None:
    path = disk.path / "api.log"
    with path.open("a") as stream:
        configure_logging(TelemetrySettings(), service="api", stream=stream)
        log = logging.getLogger("test")
        log.warning("first")
        disk.fill()
        room = 4096 - path.stat().st_size
        log.warning("x" * (room - 20))  # begins on the last block, and ends where there is none
        for number in range(WAITING + EXTRA):
            log.warning("%d", number)
        disk.free()
        log.warning("last")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    events = [line["event"] for line in lines]
    assert events[:2] == ["first", "x" * (room - 20)]
    assert events[2:-2] == [str(number) for number in range(EXTRA + 1, WAITING + EXTRA)]
    assert events[-2] == "last"
    assert (events[-1], lines[-1]["lines"]) == ("log.lines_lost", EXTRA + 1)


def test_a_stream_in_memory_gets_lines_as_they_come() -> None:
    stream = io.StringIO()
    configure_logging(TelemetrySettings(), service="api", stream=stream)
    logging.getLogger("test").warning("a %s", "\ud800")
    assert json.loads(stream.getvalue())["event"]


def test_a_stream_that_is_closed_stops_nobody_who_logs(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    configure_logging(TelemetrySettings(), service="api", stream=stream)
    stream.close()
    logging.getLogger("test").warning("late")
    assert "I/O operation on closed file" in capsys.readouterr().err
