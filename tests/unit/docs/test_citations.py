"""What the code cites is in this repository: every file, and every section of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
CODE: Final = ("libs", "services", "deploy", "tests", "examples")
SUFFIXES: Final = {".py", ".md", ".yaml", ".csv", ".toml", ""}

CITATION: Final = re.compile(
    r"docs/(?P<file>(?:reference/[\w.-]+?|architecture)\.(?:md|csv))"
    r"(?P<sections>(?:(?:\s*(?:,|and|to|sections?|\([^()]*\)))*\s*\d+(?:\.\d+)*(?![\w\"\]-]))*)"
)
"""A file, and what may follow it: ``1.7 (step 4), 2 and 3.1 to 3.4``."""
SECTION: Final = re.compile(r"^#{1,5} (\d+(?:\.\d+)*)", re.MULTILINE)
NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:\.\d+)*")
OUTSIDE: Final = re.compile(
    r"(?<![\w/.-])(?:spec/[\w-]+\.(?:md|csv)|DESIGN(?:\.md)? (?:section )?\d|STYLE\.md|\.\./shared)"
)
"""How documents that are not here were once cited."""


def sources() -> Iterator[Path]:
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "pyproject.toml"))
    for folder in CODE:
        yield from (path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix in SUFFIXES)


@cache
def sections_of(file: str) -> frozenset[str]:
    return frozenset(SECTION.findall((ROOT / "docs" / file).read_text()))


def broken_citations(text: str) -> list[str]:
    """Citations of files or sections that do not exist. Line breaks within a citation do not matter."""
    broken = []
    for found in CITATION.finditer(re.sub(r"\n\s*(?:# )?", " ", text)):
        if not (ROOT / "docs" / found["file"]).is_file():
            broken.append(found[0])
        elif found["file"].endswith(".md"):
            named = NUMBER.findall(re.sub(r"\([^()]*\)", "", found["sections"]))
            broken.extend(f"{found['file']} {number}" for number in named if number not in sections_of(found["file"]))
    return broken


def test_every_citation_leads_somewhere() -> None:
    broken = {
        str(path.relative_to(ROOT)): missing
        for path in sources()
        if path != Path(__file__) and (missing := broken_citations(path.read_text()))
    }
    assert broken == {}


def test_nothing_outside_of_the_repository_is_cited() -> None:
    found = {
        str(path.relative_to(ROOT)): OUTSIDE.findall(path.read_text()) for path in sources() if path != Path(__file__)
    }
    assert {path: cited for path, cited in found.items() if cited} == {}


def test_the_map_of_the_tests_names_tests_that_exist() -> None:
    defined = {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    named = re.findall(r"`(test_\w+)`", (ROOT / "tests" / "README.md").read_text())
    assert set(named) - defined == set()


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("docs/reference/experiments.md 1.7 (step 4) and 3.1 to 3.4; more", []),
        ("docs/reference/logs.md\n    13.2 and 13.10.", []),
        ("docs/reference/logs.md 99.1", ["reference/logs.md 99.1"]),
        ("docs/reference/logs.md 1.2 (form), 99", ["reference/logs.md 99"]),
        ("docs/reference/nowhere.md 1", ["docs/reference/nowhere.md 1"]),
    ],
)
def test_a_citation_is_a_file_and_its_sections(text: str, broken: list[str]) -> None:
    assert broken_citations(text) == broken
