"""Pictures of the documents: people who cannot see them are told what is in them, and what they name exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest

from libs.events import subjects
from libs.states.allocation import AllocationState, shown_as
from libs.states.trial import STOPPING, TrialState

ROOT: Final = Path(__file__).resolve().parents[3]
PICTURES: Final = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
PLOTS: Final = sorted((ROOT / "docs" / "plots").glob("*.svg"))
"""Of simulations, which are drawn anew with their results."""
SHOWN: Final = re.compile(r"!\[([^\]]*)\]\(([^)\s]+\.svg)\)")
SVG: Final = "{http://www.w3.org/2000/svg}"
COLOURS: Final = re.compile(r"svg \{ (--bg.*?)\}", re.DOTALL)
DEFINED: Final = re.compile(r"(--[\w-]+):")
ELSEWHERE: Final = re.compile(r"href=|@import|url\((?!#)|<script|<foreignObject")
"""A picture in a page of others is not allowed to load anything."""


def named(picture: str, kind: str) -> set[str]:
    """Texts of a picture that are names of a kind."""
    root = ElementTree.parse(ROOT / "docs" / "pictures" / picture).getroot()
    found = {text.text or "" for text in root.iter(f"{SVG}text") if kind in text.get("class", "").split()}
    assert found, f"{picture} names no {kind}"
    return found


def shown_pictures() -> dict[Path, list[str]]:
    """Each picture that a document shows, with the texts that stand for it."""
    shown: dict[Path, list[str]] = {}
    for document in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for instead, target in SHOWN.findall(document.read_text()):
            shown.setdefault((document.parent / target).resolve(), []).append(instead)
    return shown


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_is_shown_and_described(picture: Path) -> None:
    root = ElementTree.parse(picture).getroot()
    labels = [root.find(f"{SVG}{name}") for name in ("title", "desc")]
    assert all(label is not None and label.text and label.text.strip() for label in labels)
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == " ".join(str(label.get("id")) for label in labels if label is not None)
    instead = shown_pictures()[picture]
    assert all(instead), "a document shows it without a text that stands for it"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_fits_the_pages(picture: Path) -> None:
    """It is as wide as its neighbours, has their colours, one set for dark pages, and stands alone."""
    text = picture.read_text()
    assert 'viewBox="0 0 720 ' in text
    assert ELSEWHERE.search(text) is None
    light, dark = (" ".join(found.split()) for found in COLOURS.findall(text))
    assert (light, dark) == tuple(" ".join(found.split()) for found in COLOURS.findall(PICTURES[0].read_text()))
    assert DEFINED.findall(light) == DEFINED.findall(dark)
    assert set(re.findall(r"var\((--[\w-]+)\)", text)) <= set(DEFINED.findall(text))


def test_every_picture_that_is_shown_is_there() -> None:
    shown = shown_pictures()
    assert set(shown) == {*PICTURES, *PLOTS}
    assert all(all(instead) for instead in shown.values()), "a document shows one without a text that stands for it"


def test_the_architecture_has_all_services() -> None:
    services = {path.parent.name for path in (ROOT / "services").glob("*/main.py")}
    assert named("architecture.svg", "service") == services


def test_the_architecture_has_all_streams_and_buckets() -> None:
    names = {value for name, value in vars(subjects).items() if name.endswith(("_STREAM", "_BUCKET"))}
    assert named("architecture.svg", "stream") == names


def test_subjects_in_the_architecture_are_those_of_the_bus() -> None:
    assert named("architecture.svg", "subject") == {subjects.ALL_EVENTS}


def test_the_life_of_a_trial_has_all_its_states() -> None:
    """An active one shows how far its allocation has come; those on their way out differ in where they end."""
    active = {shown_as([state]) for state in AllocationState}
    lasting = set(TrialState) - STOPPING - {TrialState.ACTIVE, TrialState.RUNNING}
    assert named("trial.svg", "state") == active | {str(state) for state in lasting} | {"STOPPING"}
