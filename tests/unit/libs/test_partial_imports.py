"""A package of which only some modules are wanted imports these, and is whole for whoever asks for more."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from libs.imports.partial import import_partly

PACKAGE = "imported_partly"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Offers a light class, which looks for a neighbour while it is imported, and a heavy one."""
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").write_text("from .light import Light as Light\nfrom .heavy import Heavy as Heavy\n")
    (folder / "neighbour.py").write_text("")
    (folder / "light.py").write_text("from . import neighbour\nclass Light: ...\n")
    (folder / "heavy.py").write_text("from .light import Light\nclass Heavy(Light): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    yield PACKAGE
    sys.meta_path[:] = finders
    for name in [each for each in sys.modules if each.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def test_the_rest_of_a_package_is_not_imported(package: str) -> None:
    import_partly(package, {"light": ("Light",)})
    imported = importlib.import_module(package)
    assert imported.Light is sys.modules[f"{package}.light"].Light
    assert f"{package}.heavy" not in sys.modules


def test_it_is_imported_for_whoever_asks_for_it(package: str) -> None:
    import_partly(package, {"light": ("Light",)})
    imported = importlib.import_module(package)
    light = imported.Light
    assert issubclass(imported.Heavy, light)
    assert imported.Light is light


def test_names_that_no_package_has_do_not_load_the_rest(package: str) -> None:
    import_partly(package, {"light": ("Light",)})
    imported = importlib.import_module(package)
    assert not hasattr(imported, "__wrapped__")
    assert f"{package}.heavy" not in sys.modules
    with pytest.raises(AttributeError, match="nonsense"):
        _ = imported.nonsense


def test_a_package_that_is_loaded_stays_as_it_is(package: str) -> None:
    whole = importlib.import_module(package)
    import_partly(package, {"light": ("Light",)})
    assert importlib.import_module(package) is whole
    assert f"{package}.heavy" in sys.modules
