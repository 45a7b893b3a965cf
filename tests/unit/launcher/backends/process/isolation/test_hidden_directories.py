"""What is hidden from tasks, and what is shown in it all the same."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from services.launcher.backends.process.isolation.hidden_directories import covers


@pytest.mark.parametrize(
    ("hidden", "visible", "expected"),
    [
        (["/tmp"], [], [("/tmp", True)]),
        (["/tmp"], ["/usr", "/tmpfiles"], [("/tmp", True)]),
        (["/tmp"], ["/tmp/checkout/.venv"], [("/tmp", True), ("/tmp/checkout/.venv", False)]),
        (["/tmp"], ["/tmp/a/bin", "/tmp/a"], [("/tmp", True), ("/tmp/a", False)]),
        (["/tmp", "/tmp/state"], [], [("/tmp", True)]),
        # A state folder in a checkout whose modules tasks import.
        (["/tmp", "/tmp/a/state"], ["/tmp/a"], [("/tmp", True), ("/tmp/a", False), ("/tmp/a/state", True)]),
        (["/s"], ["/s/env", "/"], [("/s", True), ("/s/env", False)]),
        # An interpreter in /tmp/bin does not make all of /tmp visible.
        (["/tmp"], ["/tmp", "/tmp/bin"], [("/tmp", True), ("/tmp/bin", False)]),
        # Names that sort before a slash do not come between a directory and what is in it.
        (
            ["/s", "/s-1"],
            ["/s/env", "/s-1/env"],
            [("/s", True), ("/s/env", False), ("/s-1", True), ("/s-1/env", False)],
        ),
    ],
)
def test_innermost_directory_that_is_named_decides(
    hidden: Sequence[str], visible: Sequence[str], expected: Sequence[tuple[str, bool]]
) -> None:
    assert covers(hidden, visible) == expected
