"""What a check of a file has found, for people and for programs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Struct


class Mistake(Struct, frozen=True):
    kind: Literal["error", "warning"]
    """An error keeps the services from starting, or a chart from being installed."""
    key: str
    """Empty for the whole file."""
    says: str


def exit_code(mistakes: Sequence[Mistake]) -> int:
    return int(any(mistake.kind == "error" for mistake in mistakes))


def as_text(file: str, mistakes: Sequence[Mistake]) -> str:
    lines = [f"{each.kind}: {f'{each.key}: ' if each.key else ''}{each.says}" for each in mistakes]
    errors = exit_code(mistakes)
    return "\n".join([*lines, f"{file} {'cannot be used as it is' if errors else 'is good to use'}"])


def as_json(file: str, mistakes: Sequence[Mistake]) -> str:
    report = {"file": file, "ok": not exit_code(mistakes), "mistakes": mistakes}
    return msgspec.json.format(msgspec.json.encode(report)).decode()
