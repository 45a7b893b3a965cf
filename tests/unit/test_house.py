"""The shape of the house: few modules side by side, one class for one name, and one migration after the other."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PRODUCT: Final = ("libs", "services", "deploy")
WIRE: Final = "services/api/wire"
MOST_MODULES: Final = 15
MIGRATIONS: Final = ROOT / "libs/db/migrations/versions"


def modules() -> Iterator[Path]:
    """Every module of the product, relative to the checkout."""
    for top in PRODUCT:
        yield from (path.relative_to(ROOT) for path in sorted((ROOT / top).rglob("*.py")))


def test_no_folder_holds_more_modules_than_fit_on_one_look() -> None:
    by_folder: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        if path.name != "__init__.py":
            by_folder[path.parent.as_posix()].append(path.name)
    assert {folder: len(names) for folder, names in by_folder.items() if len(names) > MOST_MODULES} == {}


def test_no_two_public_classes_share_a_name() -> None:
    """Shapes of the REST interface have the names that clients know, so they are left out."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        if path.as_posix().startswith(f"{WIRE}/"):
            continue
        for name in public_classes((ROOT / path).read_text()):
            by_name[name].append(path.as_posix())
    assert {name: paths for name, paths in by_name.items() if len(paths) > 1} == {}


def public_classes(source: str) -> Iterator[str]:
    """The names of classes that a module defines at its top, and of those inside of them."""
    bodies: list[list[ast.stmt]] = [ast.parse(source).body]
    for body in bodies:
        for statement in body:
            if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
                yield statement.name
                bodies.append(statement.body)


def test_marks_of_suites_stand_in_the_files_of_the_tests_that_bear_them() -> None:
    """The Makefile looks for them there, and gives pytest these files only."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
    marks = "|".join(mark.partition(":")[0] for mark in declared)
    sets_a_mark = re.compile(rf"mark\.({marks})\b|add_marker\(|getattr\(pytest\.mark\b")
    elsewhere = [path for path in (ROOT / "tests").rglob("*.py") if not path.name.startswith("test_")]
    assert [path.as_posix() for path in elsewhere if sets_a_mark.search(path.read_text())] == []


def test_each_migration_follows_the_one_before_it() -> None:
    before = None
    for path in sorted(MIGRATIONS.rglob("[0-9]*.py"), key=lambda path: path.name):
        numbers = {
            target.id: node.value.value
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        number = path.stem.partition("_")[0]
        assert (numbers["revision"], numbers["down_revision"]) == (number, before), path.name
        before = number
