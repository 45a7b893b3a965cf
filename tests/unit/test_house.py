"""The shape of the house: few modules side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PRODUCT: Final = ("libs", "services", "deploy")
MOST_MODULES: Final = 15


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
