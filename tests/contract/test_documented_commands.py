"""Commands of ``det`` that the documentation and the notes of the chart name, the unmodified client has."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.harness.installed_client import client_python
from tests.harness.pages.blocks import blocks_of, prose_of
from tests.harness.processes import REPOSITORY

PAGES: Final = [
    *sorted((REPOSITORY / "docs").glob("*.md")),
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/README.md")),
    REPOSITORY / "deploy/helm/templates/NOTES.txt",
    REPOSITORY / "deploy/helm/templates/_checks.tpl",
    REPOSITORY / "deploy/helm/templates/_unapplied.tpl",
    REPOSITORY / "deploy/helm/values.schema.json",
]
AT_LEAST: Final = 60
"""Commands that are named today, so that a pattern that finds nothing is noticed."""

_QUOTED: Final = re.compile(r"`(?:[\w./-]*/)?det ([^`]+)`")
# Behind another command too: `det ...; det ...`, `NAME=value det ...`, `$(det ...)`.
_IN_SHELL: Final = re.compile(r"(?:^ *|[;&|(] *|^\w+=\S+ )(?:[\w./-]*/)?det ([^#\n;&|)]+)", re.MULTILINE)
_NAME: Final = re.compile(r"[a-z][a-z-]*")
_OPTION: Final = re.compile(r"-{1,2}[a-zA-Z][\w-]*")

Command = dict[str, Any]


@pytest.fixture(scope="module")
def det() -> Command:
    """Commands of the installed client, by name and alias."""
    program = REPOSITORY / "tests/harness/client_commands.py"
    # -P: beside the program there is a folder ``determined`` that is not the client.
    done = subprocess.run(
        [client_python(), "-P", "-W", "ignore", program], capture_output=True, text=True, timeout=60, check=True
    )
    found: Command = json.loads(done.stdout)
    return found


def commands(path: Path) -> Iterator[str]:
    """What stands behind ``det``, in a line of a shell or between back quotes."""
    is_page = path.suffix == ".md"
    lines = "\n".join(block.text for block in blocks_of(path, "sh")) if is_page else path.read_text()
    yield from (" ".join(found.split()) for found in _IN_SHELL.findall(lines))
    for quoted in _QUOTED.findall(prose_of(path) if is_page else lines):
        yield " ".join(quoted.split())


def wrong_with(command: str, det: Command) -> str | None:
    """The word that the client does not know; None if there is none. What is named are commands and options.

    ``a | b`` names several commands of one parent.
    """
    at = parent = det
    options = set(det["options"])
    for word in command.split():
        if word == "|":
            at = parent
        elif word.startswith("-"):
            option = word.split("=")[0]
            if _OPTION.fullmatch(option) and option not in options:
                return option
        elif at["commands"] and _NAME.fullmatch(word):
            if word not in at["commands"]:
                return word
            parent, at = at, at["commands"][word]
            options |= set(at["options"])
        elif at["passes_on"]:
            return None
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_the_client_exist_with_their_options(page: Path, det: Command) -> None:
    wrong = {f"det {command}": wrong_with(command, det) for command in commands(page)}
    assert {command: word for command, word in wrong.items() if word} == {}


def test_there_is_something_to_look_at() -> None:
    assert len([command for page in PAGES for command in commands(page)]) >= AT_LEAST


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("experiment list", None),
        ("e ls --all", None),
        ("experiment lst", "lst"),
        ("notebook start --templat small", "--templat"),
        ("user login admin", None),
        ("dev curl /api/v1/me -X GET", None),
        ("task pause | kill", None),
        ("task pause | kil", "kil"),
    ],
)
def test_a_word_that_the_client_does_not_know_is_found(command: str, word: str | None, det: Command) -> None:
    assert wrong_with(command, det) == word
