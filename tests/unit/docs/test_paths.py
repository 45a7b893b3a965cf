"""Documents lead to files and folders that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
DOCUMENTS: Final = sorted(
    [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "tests/README.md")), *(ROOT / "docs").glob("*.md")]
)
LINK: Final = re.compile(r"\]\((?!\w+:)([^)#\s]+)")
CODE: Final = re.compile(r"`([^`\n]+)`")
ROOTS: Final = ("libs/", "services/", "deploy/", "docs/", "tests/", "examples/", ".ci/", ".importlinter")
PLACEHOLDER: Final = re.compile(r"<\w+>")


def named_paths(document: Path, text: str) -> Iterator[Path]:
    """Targets of links, and code that begins with a folder of the repository; ``<noun>`` may be anything."""
    for target in LINK.findall(text):
        yield document.parent / target
    for code in CODE.findall(text):
        if code.startswith(ROOTS) and " " not in code:
            yield ROOT / code


def exists(path: Path) -> bool:
    if not PLACEHOLDER.search(str(path)):
        return path.exists()
    pattern = PLACEHOLDER.sub("*", str(path.relative_to(ROOT)))
    return any(ROOT.glob(pattern))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_that_a_document_names_exists(document: Path) -> None:
    missing = [str(path) for path in named_paths(document, document.read_text()) if not exists(path)]
    assert missing == []


def test_files_that_the_table_of_the_tests_names_exist() -> None:
    """There a file has no folder, because its name is enough to find it."""
    text = (ROOT / "tests" / "README.md").read_text()
    named = {name.rpartition("/")[2] for name in re.findall(r"`([\w/]*test_\w+\.py)`", text)}
    assert named - {path.name for path in (ROOT / "tests").rglob("test_*.py")} == set()


def test_the_glossary_is_alphabetical_and_defines_each_word_once() -> None:
    rows = re.findall(r"^\| ([^|]+?) \| [^|]+ \|$", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    words = [word.lower() for word in rows if word not in ("Word", "---")]
    assert words == sorted(set(words))


@pytest.mark.parametrize(
    ("path", "found"),
    [("libs/states/<noun>.py", True), ("services/<service>/settings.py", True), ("libs/<noun>/nowhere.py", False)],
)
def test_a_placeholder_stands_for_any_name(path: str, found: bool) -> None:
    assert exists(ROOT / path) is found
