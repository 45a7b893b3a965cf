"""Values files, each rendered once in a session."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.harness.helm import Release, find_helm, render

VALUES: Final = Path(__file__).parent / "values"
FOR_UPGRADES: Final = ("database_snapshot", "database_restore")
"""Values that mean something in an upgrade only."""

Rendered = Callable[[str], Release]


@cache
def rendered_values(name: str) -> Release:
    return render(VALUES / f"{name}.yaml", *(["--is-upgrade"] if name in FOR_UPGRADES else []))


@pytest.fixture(scope="session")
def rendered() -> Rendered:
    """A values file's name -> what the chart makes of it."""
    find_helm()
    return rendered_values


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``any_values`` is each of the values files."""
    if "any_values" in metafunc.fixturenames:
        metafunc.parametrize("any_values", sorted(path.stem for path in VALUES.glob("*.yaml")))
