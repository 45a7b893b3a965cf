"""Tables of generated pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

GENERATED: Final = "<!-- Generated from the code: make docs -->"


def table(head: tuple[str, ...], rows: Iterable[str]) -> list[str]:
    return [row(*head), "|" + "---|" * len(head), *rows]


def row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("``", "`") for cell in cells) + " |"
