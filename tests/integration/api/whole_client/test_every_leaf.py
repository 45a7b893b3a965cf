"""Each leaf command of the unmodified client: with what there is, with what there is not, and without a login; in every
format that it has. Its traceback is never what people see."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness.api import ApiProcess
from tests.harness.det import Det, Ended
from tests.harness.installed_client import client_python
from tests.harness.processes import REPOSITORY
from tests.integration.api.whole_client.objects import Objects
from tests.scenarios.leaves import LEAVES
from tests.scenarios.leaves.leaf import Leaf

FORMATS = ("json", "yaml", "csv")
NOBODY = "00000000-0000-4000-8000-000000000000"
NUMBERS = ("experiment", "trial", "trial_of_two", "token_id")
"""Kinds of objects whose ids are numbers; the others have names or UUIDs."""
FAKE_PROGRAMS = {"ssh": "echo faked ssh", "xdg-open": "echo faked browser"}

by_row = pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.name)
by_format = pytest.mark.parametrize(
    ("leaf", "output"),
    [(leaf, output) for leaf in LEAVES for output in leaf.formats.split()],
    ids=lambda value: value.command if isinstance(value, Leaf) else value,
)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A ``PATH`` on which the programs that the client starts come to nothing."""
    folder = tmp_path_factory.mktemp("programs")
    for name, does in FAKE_PROGRAMS.items():
        (folder / name).write_text(f"#!/bin/sh\n{does}\n")
        (folder / name).chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


@pytest.fixture
def admin_det(api: ApiProcess, token: str, programs: str, tmp_path: Path) -> Det:
    env = {"DET_USER": "admin", "DET_USER_TOKEN": token, "PATH": programs, "BROWSER": "true"}
    return Det(url=api.url, home=tmp_path, env=env)


@pytest.fixture
def stranger(api: ApiProcess, programs: str, tmp_path: Path) -> Det:
    """Somebody whose login is over."""
    env = {"DET_USER": "determined", "DET_USER_TOKEN": "no-token-of-ours", "PATH": programs, "BROWSER": "true"}
    return Det(url=api.url, home=tmp_path, env=env)


class Nothing:
    """Ids of objects that there are none of, for ``str.format_map``; files and new names are as they are."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def __getitem__(self, name: str) -> object:
        if not self._objects.is_object(name):
            return self._objects[name]
        return 999_999 if name.endswith(NUMBERS) else NOBODY


def typed(leaf: Leaf, objects: Any) -> list[str]:
    return shlex.split(f"{leaf.command} {leaf.arguments.format_map(objects)}")


def said(ended: Ended) -> str:
    assert "Traceback" not in ended.err, str(ended)
    return f"{ended.out}{ended.err}"


@pytest.mark.slow
@by_row
def test_what_there_is(admin_det: Det, api: ApiProcess, objects: Objects, leaf: Leaf, tmp_path: Path) -> None:
    det = admin_det
    if leaf.logs_in:
        det = Det(url=api.url, home=tmp_path)
        det("user", "login", "admin", answers=[""])
    ended = det.run(*typed(leaf, objects), answers=leaf.answers)
    assert leaf.says in said(ended), str(ended)
    assert ended.code == leaf.code, str(ended)


@pytest.mark.slow
@by_format
def test_what_there_is_in_each_format(admin_det: Det, objects: Objects, leaf: Leaf, output: str) -> None:
    ended = admin_det(*typed(leaf, objects), f"--{output}")
    said(ended)
    READERS[output](ended.out.rstrip().rpartition("\n")[0] if leaf.chatty else ended.out)


def _json(text: str) -> None:
    """One document, or of logs one for each line."""
    assert text.strip()
    while text := text.lstrip():
        _, end = json.JSONDecoder().raw_decode(text)
        text = text[end:]


def _csv(text: str) -> None:
    """One table, or several with their titles."""
    for table in text.replace("\r\n", "\n").strip().split("\n\n"):
        lines = table.partition(":\n")[2] if re.match(r"\w+:\n", table) else table
        rows = list(csv.reader(io.StringIO(lines)))
        # Some rows of the client have no last cells.
        assert max(map(len, rows)) == len(rows[0]) > 1, text


def _yaml(text: str) -> None:
    assert yaml.safe_load(text) is not None


READERS = {"json": _json, "yaml": _yaml, "csv": _csv}


@pytest.mark.slow
@by_row
def test_what_there_is_none_of(admin_det: Det, objects: Objects, leaf: Leaf) -> None:
    if not any(objects.is_object(name) for name in leaf.placeholders):
        return
    ended = admin_det.run(*typed(leaf, Nothing(objects)), answers=leaf.answers)
    assert leaf.unknown in said(ended), str(ended)
    assert ended.code == leaf.unknown_code, str(ended)


@pytest.mark.slow
@by_row
def test_without_a_login(stranger: Det, objects: Objects, leaf: Leaf) -> None:
    ended = stranger.run(*typed(leaf, Nothing(objects)), answers=leaf.answers)
    assert leaf.anonymous in said(ended), str(ended)
    assert ended.code == (1 if leaf.anonymous else leaf.code), str(ended)


def leaves_of(command: dict[str, Any], words: tuple[str, ...] = ()) -> Iterator[tuple[str, frozenset[str]]]:
    """The names of the leaves below a command, and their formats."""
    if not command["commands"]:
        yield " ".join(words), frozenset({f"--{output}" for output in FORMATS} & set(command["options"]))
    for word, part in command["commands"].items():
        if word not in {"help", "deploy", "d", *command["aliases"]}:
            yield from leaves_of(part, (*words, word))


def test_no_leaf_and_no_format_is_left_out() -> None:
    # -P: beside the program there is a folder ``determined`` that is not the client.
    program = [client_python(), "-P", "-W", "ignore", REPOSITORY / "tests/harness/client_commands.py"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=True)
    there = dict(leaves_of(json.loads(done.stdout)))
    rows: dict[str, set[str]] = {leaf.command: set() for leaf in LEAVES}
    for leaf in LEAVES:
        rows[leaf.command] |= {f"--{output}" for output in leaf.formats.split()}
    assert rows == there
