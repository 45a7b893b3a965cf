"""Renderings are shared by the processes of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.helm import Release
from tests.integration.helm.renderings import Renderings


def test_a_values_file_is_rendered_once_whoever_asks(tmp_path: Path) -> None:
    asked: list[str] = []

    def render(name: str) -> Release:
        asked.append(name)
        return Release(name, "ml", ({"kind": "Secret", "metadata": {"name": name}},))

    processes = [Renderings(tmp_path / "shared", render) for _ in range(2)]
    found = [renderings(name) for _ in range(2) for renderings in processes for name in ("one", "two")]
    assert asked == ["one", "two"]
    assert found == [render(name) for _ in range(4) for name in ("one", "two")]


def test_a_rendering_that_fails_is_not_kept(tmp_path: Path) -> None:
    def fails(name: str) -> Release:
        raise AssertionError(name)

    with pytest.raises(AssertionError, match="one"):
        Renderings(tmp_path, fails)("one")
    assert Renderings(tmp_path, lambda name: Release(name, "ml", ()))("one").name == "one"
