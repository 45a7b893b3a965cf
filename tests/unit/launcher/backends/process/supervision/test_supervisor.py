"""Exit codes are said in words."""

from __future__ import annotations

import pytest

from services.launcher.backends.process.supervision.supervisor import describe


@pytest.mark.parametrize(
    ("code", "words"),
    [(3, "exited with code 3"), (137, "ended by signal 9 (SIGKILL)"), (255, "exited with code 255")],
)
def test_exit_codes_in_words(code: int, words: str) -> None:
    assert describe(code) == words
