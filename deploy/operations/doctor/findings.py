"""What was found of one part, in a line that says what to do about it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Struct


class Finding(Struct, frozen=True, kw_only=True):
    level: Literal["ok", "warning", "problem"]
    """A problem keeps something from working; a warning may, or could not be looked into."""
    part: str
    says: str
    remedy: str = ""


def ok(part: str, says: str) -> Finding:
    return Finding(level="ok", part=part, says=says)


def warning(part: str, says: str, *, remedy: str) -> Finding:
    return Finding(level="warning", part=part, says=says, remedy=remedy)


def problem(part: str, says: str, *, remedy: str) -> Finding:
    return Finding(level="problem", part=part, says=says, remedy=remedy)


def exit_code(findings: Sequence[Finding]) -> int:
    return int(any(finding.level == "problem" for finding in findings))


def as_text(findings: Sequence[Finding]) -> str:
    lines = [
        f"{each.level:<8} {each.part}: {each.says}{f'; {each.remedy}' if each.remedy else ''}" for each in findings
    ]
    return "\n".join([*lines, summary(findings)])


def summary(findings: Sequence[Finding]) -> str:
    """How many there are of each level."""
    count = Counter(each.level for each in findings)
    return f"{_counted(count['problem'], 'problem')}, {_counted(count['warning'], 'warning')}, {count['ok']} ok"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def as_json(findings: Sequence[Finding]) -> str:
    report = {"ok": not exit_code(findings), "findings": findings}
    return msgspec.json.format(msgspec.json.encode(report)).decode()
