"""Commands of ``resolute`` and metrics that documentation, notes and alerts name, there are."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from deploy.cli import SUBCOMMANDS, _parser
from tests.harness.pages.blocks import blocks_of, prose_of

ROOT: Final = Path(__file__).resolve().parents[3]
PAGES: Final = [
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "deploy/helm/templates/NOTES.txt",
    ROOT / "deploy/helm/files/observability/alerts.yaml",
]
MODULES: Final = {each.name: each.module for each in SUBCOMMANDS}
NOT_METRICS: Final = {"resolute_test"}

_QUOTED: Final = re.compile(r"`(?:[\w./-]*/)?resolute ([a-z][^`]*)`")
_LINE: Final = re.compile(r"^(?:[\w./-]*/)?resolute ([a-z][^#\n]*)", re.MULTILINE)
_OPTION: Final = re.compile(r"(?<!\S)--[a-z][a-z-]*")
_METRIC: Final = re.compile(r"\bresolute_[a-z]+_[a-z_]+\b")


def commands(page: Path) -> Iterator[str]:
    """What stands behind ``resolute``, in a line of a shell or between back quotes."""
    is_page = page.suffix == ".md"
    for block in blocks_of(page, "sh") if is_page else ():
        yield from _LINE.findall(block.text)
    for quoted in _QUOTED.findall(prose_of(page) if is_page else page.read_text()):
        yield " ".join(quoted.split())


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    """Options that a command takes anywhere behind its name."""
    found = set()
    for action in parser._actions:
        found |= set(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                found |= options_of(each)
    return found


def actions_of(parser: argparse.ArgumentParser) -> set[str]:
    """Names of the subcommands that a command has; empty where it has none."""
    return {
        name for action in parser._actions if isinstance(action, argparse._SubParsersAction) for name in action.choices
    }


def parser_of(name: str) -> argparse.ArgumentParser:
    (subcommands,) = (each for each in _parser(MODULES[name])._actions if isinstance(each, argparse._SubParsersAction))
    found: argparse.ArgumentParser = subcommands.choices[name]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist_with_their_options(page: Path) -> None:
    wrong = []
    for command in commands(page):
        # `up | status | down` names several; what stands behind a name belongs to the last one.
        for name in re.findall(r"[a-z]+", command.split(" -")[0]) if "|" in command else [command.split()[0]]:
            if name in MODULES:
                continue
            if not any(name in actions_of(parser_of(each)) for each in MODULES if each in command.split()):
                wrong.append(f"resolute {command}: {name}")
        first = command.split()[0]
        if first not in MODULES:
            continue
        parser = parser_of(first)
        wrong += [f"resolute {command}: {each}" for each in _OPTION.findall(command) if each not in options_of(parser)]
        second = command.split()[1:2]
        if actions_of(parser) and second and second[0].isalpha() and second[0].islower():
            wrong += [f"resolute {command}"] if second[0] not in actions_of(parser) else []
    assert wrong == []


def test_there_is_something_to_look_at() -> None:
    named = {command.split()[0] for page in PAGES for command in commands(page)}
    assert named >= set(MODULES) - {"reset"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_metrics_exist(page: Path) -> None:
    known = set(_METRIC.findall((ROOT / "docs" / "metrics.md").read_text()))
    families = {re.sub(r"_(bucket|count|sum|total|created)$", "", name) for name in known}
    named = set(_METRIC.findall(page.read_text())) - NOT_METRICS
    wrong = {name for name in named if re.sub(r"_(bucket|count|sum|total|created)$", "", name) not in families}
    assert wrong == set()
