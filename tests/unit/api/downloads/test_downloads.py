"""Directories as streams, and where checkpoints are."""

from __future__ import annotations

import asyncio
import errno
import gzip
import io
import os
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
import structlog

from libs.errors import FailedPrecondition, NotFound, ResoluteError, Unavailable
from services.api.downloads.archives import Format, archive, choose_format
from services.api.downloads.directories import entries_of_directory
from services.api.downloads.entries import PIECE_BYTES
from services.api.downloads.pieces import Downloads
from services.api.downloads.storage import checkpoint_archive, checkpoint_entries, seen_from_here

BIG = os.urandom(3 * PIECE_BYTES + 17)
SMALLER = b"again and again " * 200_000


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    directory = tmp_path / "u-1"
    (directory / "code" / "empty").mkdir(parents=True)
    (directory / "weights.pt").write_bytes(BIG)
    (directory / "code" / "train.py").write_text("print(1)")
    (directory / "code" / "train.py").chmod(0o640)
    (directory / "inside").symlink_to("code/train.py")
    (directory / "outside").symlink_to("/etc/passwd")
    (directory / "dangling").symlink_to("nowhere")
    return directory


EXPECTED = ["code", "code/empty", "code/train.py", "inside", "weights.pt"]


@pytest.mark.parametrize("form", [Format.TAR, Format.TGZ])
def test_tar_holds_everything_that_belongs_to_the_checkpoint(checkpoint: Path, form: Format) -> None:
    data = b"".join(archive(entries_of_directory(checkpoint), form))
    if form is Format.TGZ:
        data = gzip.decompress(data)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as files:
        assert sorted(files.getnames()) == EXPECTED
        assert files.extractfile("weights.pt").read() == BIG  # type: ignore[union-attr]
        assert files.extractfile("inside").read() == b"print(1)"  # type: ignore[union-attr]
        assert files.getmember("code/train.py").mode == 0o640


def test_zip_holds_the_same(checkpoint: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(b"".join(archive(entries_of_directory(checkpoint), Format.ZIP)))) as files:
        assert files.testzip() is None
        assert sorted(name.rstrip("/") for name in files.namelist()) == EXPECTED
        assert files.read("weights.pt") == BIG


@pytest.mark.parametrize("form", list(Format))
def test_file_that_shrinks_while_it_is_sent_ends_the_download(checkpoint: Path, form: Format) -> None:
    pieces = archive(entries_of_directory(checkpoint), form)
    next(pieces)
    os.truncate(checkpoint / "weights.pt", 100)
    with pytest.raises(Unavailable, match=r"weights.pt was cut while it was read"):
        list(pieces)


def test_file_that_grows_while_it_is_sent_is_sent_as_it_was(checkpoint: Path) -> None:
    pieces = archive(entries_of_directory(checkpoint), Format.TAR)
    data = next(pieces)
    with (checkpoint / "weights.pt").open("ab") as file:
        file.write(b"more")
    with tarfile.open(fileobj=io.BytesIO(data + b"".join(pieces)), mode="r:") as files:
        assert files.extractfile("weights.pt").read() == BIG  # type: ignore[union-attr]


@pytest.mark.parametrize("form", [Format.TGZ, Format.ZIP])
def test_only_what_gets_smaller_is_compressed(tmp_path: Path, form: Format) -> None:
    for name, content in (("text", SMALLER), ("noise", BIG)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(content)
    sizes = {name: sum(map(len, archive(entries_of_directory(tmp_path / name), form))) for name in ("text", "noise")}
    assert sizes["text"] < len(SMALLER) / 20
    assert len(BIG) <= sizes["noise"] < len(BIG) * 1.01


def test_pieces_stay_small(checkpoint: Path) -> None:
    assert max(len(piece) for piece in archive(entries_of_directory(checkpoint), Format.TAR)) <= 3 * PIECE_BYTES


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("application/gzip", Format.TGZ),
        ("application/x-tar", Format.TAR),
        ("application/zip", Format.ZIP),
        ("*/*", Format.TAR),
        ("", Format.TAR),
        ("text/html, application/zip;q=0.9, */*;q=0.1", Format.ZIP),
        ("text/html", None),
    ],
)
def test_format_is_what_the_client_accepts(accept: str, form: Format | None) -> None:
    assert choose_format(accept) is form


async def test_consumer_that_stops_early_closes_what_was_open() -> None:
    closed = []

    def pieces() -> Iterator[bytes]:
        try:
            while True:
                yield b"x"
        finally:
            closed.append(True)

    stream = Downloads().stream(pieces(), source="here")
    assert await anext(stream) == b"x"
    await stream.aclose()  # type: ignore[attr-defined]
    assert closed == [True]


@pytest.mark.parametrize(
    ("path", "seen"),
    [("/mnt/ckpt/a", "/data/a"), ("/mnt/ckpt", "/data"), ("/mnt/other", "/everything/other"), ("/srv/x", "/srv/x")],
)
def test_longest_root_wins(path: str, seen: str) -> None:
    roots = {"/mnt": "/everything", "/mnt/ckpt": "/data"}
    assert seen_from_here(PurePosixPath(path), roots) == Path(seen)


async def test_nobody_waits_for_storage_that_hangs() -> None:
    answered, closed = threading.Event(), threading.Event()

    def pieces() -> Iterator[bytes]:
        try:
            answered.wait()
            yield b"too late"
        finally:
            closed.set()

    with pytest.raises(Unavailable, match=r"here is too slow: nothing came for 0.01 seconds"):
        await anext(Downloads(patience_s=0.01).stream(pieces(), source="here"))
    answered.set()
    assert await asyncio.to_thread(closed.wait, 60)


@pytest.mark.parametrize("storage_path", ["kept", "/shared/kept", None])
def test_shared_directory(tmp_path: Path, storage_path: str | None) -> None:
    base = tmp_path / "kept" if storage_path else tmp_path
    (base / "u-1").mkdir(parents=True)
    (base / "u-1" / "file").touch()
    storage = {"type": "shared_fs", "host_path": "/shared", "storage_path": storage_path}
    directory = {"type": "directory", "container_path": str(base)}
    for section in (storage, directory):
        assert [entry.name for entry in checkpoint_entries("u-1", section, {"/shared": str(tmp_path)})] == ["file"]


@pytest.mark.parametrize("uuid", ["", ".", "..", "../u-1", "missing"])
def test_nothing_beside_the_checkpoints_is_ever_sent(tmp_path: Path, uuid: str) -> None:
    with pytest.raises(NotFound):
        checkpoint_entries(uuid, {"type": "directory", "container_path": str(tmp_path)}, {})


def test_a_link_in_place_of_a_checkpoint_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "password").write_text("sesame")
    (tmp_path / "storage").mkdir()
    (tmp_path / "storage" / "u-1").symlink_to(tmp_path / "secrets")
    with pytest.raises(NotFound):
        checkpoint_entries("u-1", {"type": "directory", "container_path": str(tmp_path / "storage")}, {})


def test_storage_may_itself_be_behind_a_link(tmp_path: Path, checkpoint: Path) -> None:
    (tmp_path / "link").symlink_to(checkpoint.parent)
    section = {"type": "directory", "container_path": str(tmp_path / "link")}
    assert sum(len(piece) for piece in checkpoint_archive("u-1", section, {}, Format.TAR)) > len(BIG)


@pytest.mark.parametrize("replaced", ["weights.pt", "code"])
def test_what_is_replaced_by_a_link_after_it_was_listed_ends_the_download(
    tmp_path: Path, checkpoint: Path, replaced: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "train.py").write_text("sesame")
    entries = list(entries_of_directory(checkpoint))
    (checkpoint / replaced).rename(tmp_path / "moved")
    (checkpoint / replaced).symlink_to(outside / "train.py" if replaced == "weights.pt" else outside)
    name = "weights.pt" if replaced == "weights.pt" else "code/train.py"
    with pytest.raises(Unavailable, match="was replaced while the checkpoint was read"):
        list(next(entry for entry in entries if entry.name == name).read())


def test_a_pipe_in_place_of_a_file_is_not_waited_for(checkpoint: Path) -> None:
    entries = list(entries_of_directory(checkpoint))
    (checkpoint / "weights.pt").unlink()
    os.mkfifo(checkpoint / "weights.pt")
    with pytest.raises(Unavailable, match="was replaced"):
        list(next(entry for entry in entries if entry.name == "weights.pt").read())


def test_storage_of_the_past() -> None:
    with pytest.raises(FailedPrecondition, match="hdfs"):
        checkpoint_entries("u-1", {"type": "hdfs"}, {})


@pytest.mark.parametrize(
    ("error", "known"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), FailedPrecondition),
        (OSError(errno.ESTALE, "Stale file handle"), Unavailable),
    ],
)
def test_directory_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, known: type[ResoluteError]
) -> None:
    (tmp_path / "u-1").mkdir()

    def refuse(_path: object) -> None:
        raise error

    monkeypatch.setattr(os, "scandir", refuse)
    pieces = checkpoint_archive("u-1", {"type": "directory", "container_path": str(tmp_path)}, {}, Format.TAR)
    with (
        structlog.testing.capture_logs() as lines,
        pytest.raises(known, match=f"{tmp_path} cannot be read: {error.strerror}"),
    ):
        list(pieces)
    assert [(line["event"], line["storage"]) for line in lines] == [("storage.failed", f"directory {tmp_path}")]
