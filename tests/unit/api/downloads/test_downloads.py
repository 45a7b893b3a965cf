"""Directories as streams, and where checkpoints are."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from libs.errors import FailedPrecondition, NotFound
from services.api.downloads import archives
from services.api.downloads.archives import Format, archive, choose_format
from services.api.downloads.pieces import in_thread
from services.api.downloads.storage import checkpoint_directory, seen_from_here

BIG = os.urandom(3 * archives.CHUNK_BYTES + 17)


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
    data = b"".join(archive(checkpoint, form))
    if form is Format.TGZ:
        data = gzip.decompress(data)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as files:
        assert sorted(files.getnames()) == EXPECTED
        assert files.extractfile("weights.pt").read() == BIG  # type: ignore[union-attr]
        assert files.extractfile("inside").read() == b"print(1)"  # type: ignore[union-attr]
        assert files.getmember("code/train.py").mode == 0o640


def test_zip_holds_the_same(checkpoint: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(b"".join(archive(checkpoint, Format.ZIP)))) as files:
        assert files.testzip() is None
        assert sorted(name.rstrip("/") for name in files.namelist()) == EXPECTED
        assert files.read("weights.pt") == BIG


def test_file_that_shrinks_while_it_is_sent_leaves_the_archive_whole(checkpoint: Path) -> None:
    pieces = archive(checkpoint, Format.TAR)
    data = next(pieces)
    os.truncate(checkpoint / "weights.pt", 100)
    data += b"".join(pieces)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as files:
        assert files.getmember("weights.pt").size == len(BIG)


def test_pieces_stay_small(checkpoint: Path) -> None:
    assert max(len(piece) for piece in archive(checkpoint, Format.TAR)) <= 3 * archives.CHUNK_BYTES


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

    stream = in_thread(pieces())
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


@pytest.mark.parametrize("storage_path", ["kept", "/shared/kept", None])
def test_shared_directory(tmp_path: Path, storage_path: str | None) -> None:
    base = tmp_path / "kept" if storage_path else tmp_path
    (base / "u-1").mkdir(parents=True)
    storage = {"type": "shared_fs", "host_path": "/shared", "storage_path": storage_path}
    assert checkpoint_directory("u-1", storage, {"/shared": str(tmp_path)}) == base / "u-1"
    assert checkpoint_directory("u-1", {"type": "directory", "container_path": str(base)}, {}) == base / "u-1"


@pytest.mark.parametrize("uuid", ["", ".", "..", "../u-1", "missing"])
def test_nothing_beside_the_checkpoints_is_ever_sent(tmp_path: Path, uuid: str) -> None:
    with pytest.raises(NotFound):
        checkpoint_directory(uuid, {"type": "directory", "container_path": str(tmp_path)}, {})


def test_storage_that_only_clients_can_read(tmp_path: Path) -> None:
    with pytest.raises(FailedPrecondition, match="s3"):
        checkpoint_directory("u-1", {"type": "s3", "bucket": "b"}, {})
