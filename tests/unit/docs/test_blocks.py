"""No fenced block of the documentation is forgotten: each has a row that says which test uses it, or why none does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.harness.pages.blocks import blocks_of, prose_of
from tests.harness.pages.shell import commands
from tests.harness.processes import REPOSITORY
from tests.scenarios.documented_blocks import NOT_TYPED, ROWS, How, blocks_that_are

PAGES: Final = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for path in (
        REPOSITORY / "README.md",
        REPOSITORY / "CONTRIBUTING.md",
        *(REPOSITORY / "docs").rglob("*.md"),
    )
    if blocks_of(path)
)


def test_every_page_with_blocks_has_rows() -> None:
    assert sorted(ROWS) == PAGES


@pytest.mark.parametrize("name", PAGES)
def test_every_block_has_a_row_in_the_order_of_the_page(name: str) -> None:
    blocks = blocks_of(REPOSITORY / name)
    first_lines = [block.text.partition("\n")[0] for block in blocks]
    rows = [row.begins for row in ROWS[name]]
    assert [line[: len(begins)] for line, begins in zip(first_lines, rows, strict=False)] == rows
    assert len(rows) == len(blocks), f"{name}: {first_lines}"


@pytest.mark.parametrize("name", PAGES)
def test_files_have_names_in_the_text(name: str) -> None:
    """The title of a fence is shown on the site, and nowhere else."""
    text = prose_of(REPOSITORY / name)
    files = [Path(block.file).name for block in blocks_of(REPOSITORY / name) if block.file]
    assert [file for file in files if f"`{file}`" not in text] == []


def test_what_a_row_names_exists_and_names_the_page() -> None:
    """A test finds its blocks by the name of the page, or all those of its kind."""
    wrong = []
    for name, rows in ROWS.items():
        for row in (row for row in rows if row.how is not How.SHOWN):
            source = (REPOSITORY / row.by).read_text()
            if Path(name).stem not in source and f"How.{row.how.name}" not in source:
                wrong.append((name, row.begins, row.by))
    assert wrong == []


def test_what_is_shown_only_has_a_reason() -> None:
    assert [row.begins for rows in ROWS.values() for row in rows if row.how is How.SHOWN and not row.by] == []


def test_what_is_not_typed_is_on_a_page() -> None:
    typed = [
        command
        for how in (How.USED, How.RENDERED)
        for block in blocks_that_are(how)
        if block.language == "sh"
        for command in commands(block.text)
    ]
    assert [each for each in NOT_TYPED if not any(command.startswith(each) for command in typed)] == []


def test_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    typed = [
        command.split()[1]
        for block in blocks_that_are(How.TARGETS)
        for command in commands(block.text)
        if command.startswith("make ")
    ]
    assert "demo" in typed
    assert set(typed) - targets == set()
