"""What a library imports and does not use is not loaded, and is whole for whoever does use it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from libs.imports.deferred import defer_imports

PACKAGE = "importing_much"
HEAVY, CHILD = f"{PACKAGE}_heavy", f"{PACKAGE}_parent.child"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / f"{PACKAGE}.py").write_text(
        f"import {HEAVY}\n"
        f"import {CHILD}\n"
        f"from {HEAVY} import Parser\n"
        "parser = Parser('given')\n"
        f"def value(): return {HEAVY}.VALUE\n"
        f"def deep(): return {CHILD}.DEEP\n"
    )
    (tmp_path / f"{HEAVY}.py").write_text(
        "VALUE = 7\n"
        "class Parser:\n"
        "    def __init__(self, text): self.text = text\n"
        "    def parsed(self): return self.text\n"
    )
    (tmp_path / f"{PACKAGE}_parent").mkdir()
    (tmp_path / f"{PACKAGE}_parent" / "__init__.py").write_text("")
    (tmp_path / f"{PACKAGE}_parent" / "child.py").write_text("DEEP = 8\n")
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    defer_imports({PACKAGE: {HEAVY: ("Parser",), CHILD: ()}})
    yield PACKAGE
    sys.meta_path[:] = finders
    for name in [each for each in sys.modules if each.startswith(PACKAGE)]:
        del sys.modules[name]


def test_what_is_not_used_is_not_loaded(package: str) -> None:
    importlib.import_module(package)
    assert not sys.modules.keys() & {HEAVY, CHILD}


def test_what_is_used_is_loaded_then(package: str) -> None:
    imported = importlib.import_module(package)
    assert (imported.value(), imported.deep()) == (7, 8)
    assert sys.modules.keys() >= {HEAVY, CHILD}
    assert imported.parser.parsed() == "given"
    assert imported.parser.parsed.__self__ is imported.parser.parsed.__self__, "made once"


def test_others_import_the_module_itself(package: str) -> None:
    importlib.import_module(package)
    heavy, child = importlib.import_module(HEAVY), importlib.import_module(CHILD)
    assert (heavy.VALUE, child.DEEP) == (7, 8)
    assert sys.modules[f"{PACKAGE}_parent"].child is child


def test_what_is_loaded_already_is_found_as_ever(package: str) -> None:
    heavy = importlib.import_module(HEAVY)
    assert vars(importlib.import_module(package))[HEAVY] is heavy


def test_a_function_that_is_given_is_called_instead(package: str) -> None:
    defer_imports({package: {HEAVY: {"Parser": lambda text: f"not {text}"}}})
    imported = importlib.import_module(package)
    assert imported.parser == "not given"
    assert HEAVY not in sys.modules
    assert imported.value() == 7


def test_names_that_are_not_there_are_missed(package: str) -> None:
    imported = importlib.import_module(package)
    with pytest.raises(AttributeError, match="nothing"):
        _ = vars(imported)[HEAVY].nothing
