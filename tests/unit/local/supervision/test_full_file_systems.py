"""Which file system is full, and the log that says so although it is on it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.file_systems import file_system, full_file_systems
from deploy.local.layout import write_private
from deploy.local.supervision.steady_log import WAITING, SteadyLog
from tests.harness.full_disk import SmallDisk, small_disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", size_mb=8) as made:
        yield made


def test_a_full_file_system_is_named_once_by_where_it_is_mounted(disk: SmallDisk) -> None:
    paths = [disk.path, disk.path / "not" / "there", disk.path.parent]
    assert full_file_systems(paths) == []
    disk.fill()
    (full,) = full_file_systems(paths)
    assert (full.mount_point, full.free_bytes) == (str(disk.path), 0)
    assert str(full) == f"{disk.path} (0.0 of 8.0 MB free)"


def test_a_path_is_on_the_file_system_of_its_nearest_parent(tmp_path: Path) -> None:
    found = file_system(tmp_path / "a" / "b").mount_point
    assert found == file_system(tmp_path).mount_point
    assert Path(found).is_mount()


def test_the_log_goes_on_while_its_disk_is_full(disk: SmallDisk) -> None:
    path = disk.path / "supervisor.log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    log = SteadyLog(descriptor)
    log.keep_space()
    disk.fill()
    for number in range(1000):
        log.say(f"line {number} of a thousand, which is more than what is kept and what waits {'.' * 50}")
    while_full = path.read_text().splitlines()
    disk.free()
    log.say("the last")
    os.close(descriptor)
    lines = path.read_text().splitlines()
    # What is kept took the first lines, the newest waited, and each is whole.
    assert 200 < len(while_full) < 1000
    numbers = [int(line.split()[2]) for line in lines[:-1]]
    newest = WAITING - 1  # beside the last
    assert numbers == [*range(len(while_full)), *range(1000 - newest, 1000)]
    assert lines[-1].endswith(" the last")


def test_a_file_is_replaced_whole_or_not_at_all(disk: SmallDisk) -> None:
    path = disk.path / "options.json"
    write_private(path, "good")
    disk.fill()
    with pytest.raises(OSError, match="No space left"):
        write_private(path, "x" * 100_000)
    assert [entry.name for entry in disk.path.iterdir() if entry.name != "ballast"] == ["options.json"]
    assert path.read_text() == "good"
    write_private(path, "good")  # nothing is to be written


def test_a_file_whose_space_is_kept_is_replaced_on_a_full_disk(disk: SmallDisk) -> None:
    path = disk.path / "plan.json"
    write_private(path, "first", keep_space=True)
    disk.fill()
    write_private(path, "second, which is longer", keep_space=True)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("second, which is longer", 0o600)
