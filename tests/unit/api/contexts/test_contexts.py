"""Packing what users upload, and looking into it."""

from __future__ import annotations

import errno
import io
import os
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from libs.errors import InvalidRequest, NotFound
from services.api.contexts import pack
from services.api.contexts.pack import pack_context
from services.api.contexts.tree import BINARY, TEXT, file_tree, read_file
from services.api.wire.experiments.model_definitions import File

FILES = [
    File(path="train.py", content=b"print('hello')\n", mode=0o100755, mtime="1700000000", uid=1000, gid=1000),
    File(path="data", type=53, mode=0o40700, mtime="1600000000"),
    File(path="data/weights.xyz", content=b"\0\1\2", mode=0o600),
    File(path="latest", type=50, content=b"data/weights.xyz"),
    File(path="a/deep/notes", content="größer".encode()),
]


def members(tgz: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(tgz), mode="r:gz") as archive:
        return {member.name: member for member in archive}


def test_modes_times_owners_directories_and_links_survive() -> None:
    packed = members(pack_context(FILES))
    train, data, link = packed["train.py"], packed["data"], packed["latest"]
    assert (train.mode, train.mtime, train.uid, train.gid, train.size) == (0o755, 1700000000, 1000, 1000, 15)
    assert (data.isdir(), data.mode, data.mtime) == (True, 0o700, 1600000000)
    assert (link.issym(), link.linkname) == (True, "data/weights.xyz")


def test_the_same_files_give_the_same_bytes() -> None:
    assert pack_context(FILES) == pack_context(FILES)


def test_no_files_are_an_archive_too() -> None:
    assert members(pack_context([])) == {}


@pytest.mark.parametrize(
    "file",
    [
        File(path="/etc/passwd"),
        File(path="../up"),
        File(path="a/../../up"),
        File(path=""),
        File(path="pipe", type=54),
        File(path="link", type=50, content=b"/etc/passwd"),
        File(path="a/link", type=50, content=b"../../up"),
        File(path="link", type=50, content=b"\xff"),
        File(path="link", type=50),
    ],
    ids=lambda file: f"{file.type}-{file.path}",
)
def test_nothing_leads_out_of_the_context(file: File) -> None:
    with pytest.raises(InvalidRequest):
        pack_context([file])


def test_numbers_that_no_archive_can_hold_do_no_harm() -> None:
    odd = File(path="x", mode=-1, mtime=str(-(2**63)), uid=-5, gid=2**31 - 1)
    packed = members(pack_context([odd]))["x"]
    assert (packed.mode, packed.mtime, packed.uid, packed.gid) == (0o777, 0, 0, 2**31 - 1)


def link(path: str, target: str) -> File:
    return File(path=path, type=50, content=target.encode())


OUTSIDE = [
    [link("d", "."), link("d/l", "..")],
    [link("d", "."), link("l", "d/..")],
    [link("a/b/up", "../.."), link("l", "a/b/up/..")],
    [link("one", "two/.."), link("two", "three"), link("three", ".")],
    [link("l", "x/../../y"), link("x", "a")],
    [link("l", "."), File(path="l/file")],
    [link("same", "a"), File(path="same")],
    [link(".", "a")],
]
INSIDE = [
    [link("latest", "runs/3"), File(path="runs/3", type=53), link("runs/first", "../runs/1")],
    [link("a", "b"), link("b", "a")],
    [link("self", "self")],
    [link("here", "."), link("again", "here/here/train.py")],
    [link("a/b/up", "../.."), link("l", "a/b/up/train.py")],
]


@pytest.mark.parametrize("files", OUTSIDE)
def test_links_are_followed_over_the_real_tree(files: list[File]) -> None:
    with pytest.raises(InvalidRequest):
        pack_context(files)


@pytest.mark.parametrize("files", INSIDE)
def test_links_that_stay_inside_are_packed(files: list[File]) -> None:
    assert len(members(pack_context(files))) == len(files)


def is_circle(path: Path) -> bool:
    """Whether the kernel follows the link to nowhere; ``realpath`` goes on behind it as if it were a directory."""
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


@settings(max_examples=300)
@example({"a": "a/../.."})
@given(
    st.dictionaries(
        st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join),
        st.lists(st.sampled_from([".", "..", "a", "b", "c"]), min_size=1, max_size=5).map("/".join),
        max_size=5,
    )
)
def test_whatever_is_packed_leads_nowhere_outside_when_unpacked(links: dict[str, str]) -> None:
    try:
        tgz = pack_context([link(path, target) for path, target in links.items()])
    except InvalidRequest:
        return
    with tempfile.TemporaryDirectory() as outside:
        inside = Path(os.path.realpath(outside)) / "x" / "inside"
        inside.mkdir(parents=True)
        with tarfile.open(fileobj=io.BytesIO(tgz), mode="r:gz") as archive:
            archive.extractall(inside, filter="fully_trusted")
        for path in links:
            assert is_circle(inside / path) or Path(os.path.realpath(inside / path)).is_relative_to(inside)


def test_times_and_depths_that_nobody_can_show_are_bounded() -> None:
    (late,) = file_tree(pack_context([File(path="x", mtime=str(2**62))]))
    assert late.modified_time == "9999-12-31T23:59:59Z"
    file_tree(pack_context([File(path="/".join("a" * 100))]))
    for path in ("/".join("a" * 101), "a" * 5000):
        with pytest.raises(InvalidRequest, match="too long a path"):
            pack_context([File(path=path)])


def test_nothing_runs_with_the_rights_of_somebody_else() -> None:
    assert members(pack_context([File(path="x", mode=0o106755)]))["x"].mode == 0o755


def test_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "MAX_CONTEXT_BYTES", 17)
    pack_context(FILES[:1])
    with pytest.raises(InvalidRequest, match="too large"):
        pack_context(FILES[:3])
    monkeypatch.setattr(pack, "MAX_FILES", 2)
    with pytest.raises(InvalidRequest, match="too many files"):
        pack_context([File(path="x")] * 3)


def test_tree_has_directories_first_and_those_nobody_mentioned() -> None:
    top = file_tree(pack_context(FILES))
    assert [(node.name, node.is_dir) for node in top] == [
        ("a", True),
        ("data", True),
        ("latest", False),
        ("train.py", False),
    ]
    data, train = top[1], top[3]
    assert [(node.path, node.content_length, node.content_type) for node in data.files] == [
        ("data/weights.xyz", 3, BINARY)
    ]
    assert data.modified_time == "2020-09-13T12:26:40Z"
    assert (train.content_type, train.content_length) == ("text/x-python; charset=utf-8", 15)
    assert top[0].files[0].files[0].content_type == TEXT


def test_directory_mentioned_after_its_content_keeps_it() -> None:
    late = [File(path="d/x", content=b"1"), File(path="d", type=53, mode=0o700, mtime="1600000000")]
    (directory,) = file_tree(pack_context(late))
    assert [node.path for node in directory.files] == ["d/x"]
    assert directory.modified_time == "2020-09-13T12:26:40Z"


def test_single_file() -> None:
    tgz = pack_context([*FILES, structs.replace(FILES[0], content=b"newer")])
    assert read_file(tgz, "./train.py") == b"newer"
    assert read_file(tgz, "a/deep/notes") == "größer".encode()
    with pytest.raises(NotFound):
        read_file(tgz, "nothing")
    with pytest.raises(InvalidRequest):
        read_file(tgz, "data")
