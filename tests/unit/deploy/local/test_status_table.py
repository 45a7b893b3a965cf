"""What ``resolute status`` looks like."""

from __future__ import annotations

import io

import pytest

from deploy.local.status_table import StatusRow, as_text
from deploy.terminal import colours, duration

ROWS = [
    StatusRow("postgres", "127.0.0.1:45123", 4194301, 0, 23 * 3600 + 59 * 60),
    StatusRow("nats", "nats://127.0.0.1:45123", 4194302, 12, 8),
    StatusRow("api", "https://127.0.0.1:18080", 4194303, 3, 4, is_steady=False),
    StatusRow("scheduler-standby", "stands by", 4194304, 0, 99 * 86_400 + 23 * 3600),
    StatusRow("launcher", "pool default: 128 slots", 4194305, 0, 61),
    StatusRow("logs", "log: logs/logs.log"),
]


def test_it_fits_80_columns() -> None:
    lines = as_text(ROWS, coloured=False).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["SERVICE", "PID", "RESTARTS", "UP", "WHERE"]
    assert lines[1].split() == ["postgres", "4194301", "0", "23", "h", "59", "min", "127.0.0.1:45123"]
    assert lines[6].split() == ["logs", "-", "-", "down", "log:", "logs/logs.log"]
    assert "\x1b" not in "".join(lines)


def test_colours_say_what_is_wrong_and_move_no_column() -> None:
    plain, painted = (as_text(ROWS, coloured=coloured).splitlines() for coloured in (False, True))
    codes = ["\x1b[1m", "\x1b[32m", "\x1b[32m", "\x1b[33m", "\x1b[32m", "\x1b[32m", "\x1b[31m"]
    for line, bare, code in zip(painted, plain, codes, strict=True):
        assert line.replace(code, "").replace("\x1b[0m", "") == bare
        assert code in line


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-1, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (3 * 3600 + 300, "3 h 5 min"),
        (86_400, "1 d"),
        (4 * 86_400 + 20 * 3600, "4 d 20 h"),
    ],
)
def test_durations_are_said_as_people_do(seconds: float, said: str) -> None:
    assert duration(seconds) == said


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals_that_want_them() -> None:
    assert colours(Terminal(), {"TERM": "xterm"})
    assert not colours(Terminal(), {"TERM": "xterm", "NO_COLOR": "1"})
    assert not colours(Terminal(), {"TERM": "dumb"})
    assert not colours(io.StringIO(), {"TERM": "xterm"})
