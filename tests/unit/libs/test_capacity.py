"""The capacity of a pool is what its launcher says under its own key, and of no other."""

from __future__ import annotations

import msgspec
import pytest

from libs.capacity import CapacityView
from libs.events import subjects
from libs.events.capacity import PoolCapacity


@pytest.fixture
def view() -> CapacityView:
    return CapacityView()


def said(pool: str, backend: str = "process") -> bytes:
    return msgspec.json.encode(PoolCapacity(pool=pool, backend=backend))


def test_a_pool_has_the_capacity_that_its_launcher_reports(view: CapacityView) -> None:
    view._learn(subjects.capacity_key("gpu.a"), said("gpu.a"))
    assert view.of("gpu.a") == PoolCapacity(pool="gpu.a", backend="process")
    assert view.of("cpu") is None


def test_nobody_speaks_of_the_capacity_of_another_pool(view: CapacityView) -> None:
    view._learn(subjects.capacity_key("cpu"), said("cpu"))
    view._learn(subjects.capacity_key("gpu"), said("cpu", "kubernetes"))
    assert view.of("cpu") == PoolCapacity(pool="cpu", backend="process")
    assert view.of("gpu") is None


def test_what_cannot_be_read_changes_nothing(view: CapacityView) -> None:
    view._learn(subjects.capacity_key("cpu"), said("cpu"))
    view._learn(subjects.capacity_key("cpu"), b"{")
    assert view.of("cpu") == PoolCapacity(pool="cpu", backend="process")
