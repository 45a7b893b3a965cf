"""Files of a task on a full disk: replaced where space was kept, and never taken for something else than late."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from libs.capture.lines import CapturedLine, EndOfStream, decode, encode_line
from services.launcher.backends.process.records import AllocationFiles, PodFiles, StopRecord
from services.launcher.backends.process.shippers import finish_output, is_shipped
from services.launcher.files import capture
from services.launcher.files.capture import is_sealed
from tests.harness.full_disk import SmallDisk, small_disk
from tests.harness.waiting import wait_until

STOP = StopRecord(deadline=12.5, ordered=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", size_mb=1) as made:
        yield made


def test_a_record_is_written_where_space_was_kept(disk: SmallDisk) -> None:
    files = AllocationFiles(disk.path)
    files.keep_space(StopRecord)
    assert files.read(StopRecord) is None
    disk.fill()
    files.write(STOP)
    assert files.read(StopRecord) == STOP


def test_a_record_that_cannot_be_written_leaves_the_one_before(disk: SmallDisk) -> None:
    files = AllocationFiles(disk.path)
    files.write(STOP)
    disk.fill()
    with pytest.raises(OSError, match="No space left"):
        files.write(StopRecord(deadline=1, ordered=False))
    assert files.read(StopRecord) == STOP
    disk.free()
    files.write(StopRecord(deadline=1, ordered=False))
    assert files.read(StopRecord) == StopRecord(deadline=1, ordered=False)


def test_output_is_sealed_when_there_is_space_for_its_end(disk: SmallDisk) -> None:
    files = PodFiles(disk.path)
    files.logs.mkdir()
    files.ship.mkdir()
    written = b"".join(encode_line(number, 1, b"x" * 80) for number in range(50))
    (files.logs / "stdout.0.log").write_bytes(written[: len(written) // 4096 * 4096])
    disk.fill()
    with pytest.raises(OSError, match="No space left"):
        finish_output(files, 0)
    assert not is_shipped(files)
    disk.free()
    finish_output(files, 0)
    assert is_sealed(str(files.logs))
    assert not is_shipped(files)


def test_what_a_killed_wrapper_had_no_space_for_is_said_to_be_lost(disk: SmallDisk) -> None:
    files = PodFiles(disk.path)
    files.logs.mkdir()
    files.ship.mkdir()
    script = "echo before; echo other >&2; read -r go < go; while :; do echo more; done"
    os.mkfifo(disk.path / "go")
    argv = [sys.executable, capture.__file__, "--dir", str(files.logs), "--", "sh", "-c", script]
    wrapper = subprocess.Popen(argv, cwd=disk.path, start_new_session=True)
    try:
        written = files.logs / "stdout.0.log"
        wait_until(lambda: written.exists() and b"before" in written.read_bytes())
        with disk.filled():
            (disk.path / "go").write_text("go\n")
            wait_until(lambda: bool(written.stat().st_mode & capture.WAITS_FOR_SPACE))
            os.killpg(wrapper.pid, signal.SIGKILL)
            wrapper.wait()
    finally:
        if wrapper.poll() is None:
            os.killpg(wrapper.pid, signal.SIGKILL)
    finish_output(files, 137)
    assert is_sealed(str(files.logs))
    *_, last, end = [decode(line) for line in written.read_bytes().splitlines(keepends=True)]
    assert isinstance(last, CapturedLine)
    assert last.payload.startswith(b"WARNING: stdout broke off here: the disk was full")
    assert end == EndOfStream(seq=last.seq + 1, timestamp_ns=getattr(end, "timestamp_ns", 0), exit_code=137)
    other = [decode(line) for line in (files.logs / "stderr.0.log").read_bytes().splitlines(keepends=True)]
    assert [getattr(line, "payload", None) for line in other] == [b"other", None], "nothing of it is lost"


def test_a_wrapper_that_gets_space_again_has_lost_nothing(disk: SmallDisk) -> None:
    stream = capture.StreamFile(str(disk.path), "stdout", 1 << 20, None)
    stream.write([b"x" * 80])
    disk.fill()
    writing = threading.Thread(target=stream.write, args=([b"y" * 8000],))
    writing.start()
    written = disk.path / "stdout.0.log"
    wait_until(lambda: bool(written.stat().st_mode & capture.WAITS_FOR_SPACE))
    disk.free()
    writing.join(30)
    assert not written.stat().st_mode & capture.WAITS_FOR_SPACE
    capture.seal(str(disk.path), None)
    records = [decode(line) for line in written.read_bytes().splitlines(keepends=True)]
    assert [len(getattr(record, "payload", b"")) for record in records] == [80, 8000, 0]
