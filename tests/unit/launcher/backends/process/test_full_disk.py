"""Files of a task on a full disk: replaced where space was kept, and never taken for something else than late."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from libs.capture.lines import encode_line
from services.launcher.backends.process.records import AllocationFiles, PodFiles, StopRecord
from services.launcher.backends.process.shippers import finish_output, is_shipped
from services.launcher.files.capture import is_sealed
from tests.harness.full_disk import SmallDisk, small_disk

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
