"""Fenced blocks of a page, with the heading that each stands below and the file that it says it is."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.harness.processes import REPOSITORY

_FENCE: Final = re.compile(r'^ *```(?P<language>\w*)(?: title="(?P<file>[^"]+)")?$')
_HEADING: Final = re.compile(r"^#+ (.+)$")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    line     of the page, counted from 1, at which the fence opens
    heading  the last one above it
    file     where a reader saves it: the ``title`` of the fence; empty for what is not saved
    text     without the fences and without the indentation of a list
    """

    page: Path
    line: int
    heading: str
    language: str
    file: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks_of(page: Path, *languages: str) -> list[Block]:
    """The blocks of a page in their order; all of them, or those in ``languages``."""
    found = [part for part in _parts(page) if isinstance(part, Block)]
    return [block for block in found if block.language in languages] if languages else found


def prose_of(page: Path) -> str:
    """The page without its blocks."""
    return "\n".join(part for part in _parts(page) if isinstance(part, str))


def document(name: str) -> Path:
    """The page ``docs/<name>.md``."""
    return REPOSITORY / "docs" / f"{name}.md"


def _parts(page: Path) -> Iterator[Block | str]:
    """Blocks, and the lines between them."""
    heading = ""
    lines = enumerate(page.read_text().splitlines(), start=1)
    for number, line in lines:
        if opened := _FENCE.match(line):
            inside = []
            for _, each in lines:
                if each.strip() == "```":
                    break
                inside.append(f"{each}\n")
            else:
                raise ValueError(f"{page}:{number}: the block does not end")
            text = textwrap.dedent("".join(inside))
            yield Block(page, number, heading, opened["language"], opened["file"] or "", text)
            continue
        if line.lstrip().startswith("```"):
            raise ValueError(f"{page}:{number}: a fence has a language, and perhaps a title, and nothing else")
        if found := _HEADING.match(line):
            heading = found[1]
        yield line
