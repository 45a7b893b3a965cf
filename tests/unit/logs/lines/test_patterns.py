"""Which lines policies ask for (docs/reference/logs.md 7.2)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.events.logs import LogLine
from services.logs.lines.patterns import LogPolicy, Patterns


def lines(*logs: bytes) -> list[LogLine]:
    return [LogLine(seq, 0, log) for seq, log in enumerate(logs)]


def matched(patterns: list[str], *logs: bytes) -> list[tuple[str, int]]:
    """Pattern and number of line of each match."""
    found = Patterns(LogPolicy(pattern=pattern) for pattern in patterns).matches(lines(*logs))
    return [(match.policy.pattern, match.line.seq) for match in found]


@pytest.mark.parametrize(
    ("pattern", "log", "is_found"),
    [
        (".*CUDA out of memory.*", b"RuntimeError: CUDA out of memory. Tried\n", True),
        (".*CUDA out of memory.*", b"cuda out of memory\n", False),
        ("assert 0 <= self", b"    assert 0 <= self.x\n", True),
        ("^end\n$", b"end\n", True),
        ("^nd", b"end\n", False),
        (r"(?i)NCCL\s+error \d+", b"nccl  error 5", True),
        ("ä.b", "xä漢b\n".encode(), True),
        ("a.b", b"a\xffb\n", True),  # invalid text is one odd character
        ("a", b'{"log_policies": [{"pattern": "a"}]}\n', False),
        (r"\Qa.b\E", b"a.b", True),
        ("", b"anything", True),
    ],
)
def test_patterns_are_searched_in_lines(pattern: str, log: bytes, is_found: bool) -> None:
    assert (matched([pattern], log) == [(pattern, 0)]) is is_found


def test_every_policy_finds_every_line() -> None:
    assert matched(["b", "a"], b"a\n", b"c\n", b"ab\n") == [("a", 0), ("b", 2), ("a", 2)]
    assert matched(["a", "a"], b"a") == [("a", 0), ("a", 0)]
    assert matched([], b"a") == []
    assert matched(["a"]) == []


def test_what_is_no_regular_expression_leaves_the_others_alone() -> None:
    assert matched(["assert (0 <=", "b"], b"assert (0 <= b") == [("b", 0)]


def _is_valid(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return "*+" not in pattern and "++" not in pattern


@given(
    st.lists(st.text("ab.*+ -", min_size=1, max_size=4).filter(_is_valid), min_size=1, max_size=3),
    st.lists(st.text("ab -", max_size=4).map(lambda text: f"{text}\n".encode()), max_size=5),
)
def test_looking_at_all_lines_at_once_finds_what_looking_at_each_does(patterns: list[str], logs: list[bytes]) -> None:
    """Plain patterns take the short way; in a group they do not."""
    groups = [f"({pattern})" for pattern in patterns]
    assert [seq for _, seq in matched(patterns, *logs)] == [seq for _, seq in matched(groups, *logs)]
