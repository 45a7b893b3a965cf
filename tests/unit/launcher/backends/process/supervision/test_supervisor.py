"""How a pod ended is said in words: in its own, if it left some."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.launcher.backends.process.supervision.supervisor import LAST_WORDS_BYTES, describe, last_words


@pytest.mark.parametrize(
    ("code", "words"),
    [(3, "exited with code 3"), (137, "ended by signal 9 (SIGKILL)"), (255, "exited with code 255")],
)
def test_exit_codes_in_words(code: int, words: str) -> None:
    assert describe(code) == words


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (b"", ""),
        (b"needs sshd\n", "needs sshd"),
        (b"odd \xff\x00", "odd \ufffd"),
        (b"x" * 2 * LAST_WORDS_BYTES, "x" * LAST_WORDS_BYTES),
    ],
    ids=["none", "some", "not text", "too many"],
)
def test_last_words(tmp_path: Path, left: bytes, words: str) -> None:
    (tmp_path / "termination-log").write_bytes(left)
    assert last_words(str(tmp_path)) == words


def test_nothing_in_the_place_of_last_words_leads_anywhere(tmp_path: Path) -> None:
    assert last_words(str(tmp_path)) == ""
    place = tmp_path / "termination-log"
    (tmp_path / "secret").write_text("secret")
    place.symlink_to(tmp_path / "secret")
    assert last_words(str(tmp_path)) == ""
    place.unlink()
    os.mkfifo(place)
    assert last_words(str(tmp_path)) == ""
    place.unlink()
    place.mkdir()
    assert last_words(str(tmp_path)) == ""
