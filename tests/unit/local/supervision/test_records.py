"""Records that are written over one another, so that a full disk keeps nobody from it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy import process_records as records
from deploy.process_records import ProcessRecord
from tests.harness.full_disk import SmallDisk, small_disk

FIRST = ProcessRecord(pid=7, start_time="123", restarts=0, since=1.5)
SECOND = ProcessRecord(pid=88888, start_time="456", restarts=12, since=2.5)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path, size_mb=1) as made:
        yield made


def test_what_was_written_last_is_read(tmp_path: Path) -> None:
    path = tmp_path / "api.json"
    assert records.read(path) is None
    for record in (FIRST, SECOND, FIRST):
        records.write(path, record)
        assert records.read(path) == record
    records.clear(path)
    assert records.read(path) is None
    assert path.stat().st_size == records.BYTES


def test_space_is_kept_without_touching_what_is_said(tmp_path: Path) -> None:
    path = tmp_path / "api.json"
    path.write_text('{"pid": 7, "start_time": "123", "restarts": 0, "since": 1.5}')  # as a release before wrote it
    records.keep_space(path)
    assert (records.read(path), path.stat().st_size) == (FIRST, records.BYTES)


@pytest.mark.parametrize("said", ['{"pid": 7, "sta', '{"pid": 7}', "[]", "no JSON"])
def test_nonsense_is_no_record(tmp_path: Path, said: str) -> None:
    path = tmp_path / "api.json"
    path.write_text(said)
    assert records.read(path) is None


def test_a_full_disk_keeps_nobody_from_writing_where_space_is_kept(disk: SmallDisk) -> None:
    kept, new = disk.path / "api.json", disk.path / "logs.json"
    records.keep_space(kept)
    disk.fill()
    for record in (FIRST, SECOND):
        records.write(kept, record)
        assert records.read(kept) == record
    with pytest.raises(OSError, match="No space left"):
        records.write(new, FIRST)
    records.clear(kept)
    records.write(kept, SECOND)
    assert os.statvfs(disk.path).f_bavail == 0
    assert records.read(kept) == SECOND
