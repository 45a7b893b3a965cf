"""Apis that give live updates: under basic authorization, and under RBAC."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.api import ApiProcess
from tests.integration.api.world import CLUSTER, World

SWITCH = "feature_switches: [streaming_updates]\n"
QUICK: dict[str, Any] = {"recheck_interval_s": 0.5, "look_interval_s": 30}
"""Rights are looked at every half second, and rows only for a reason."""


def replica(world: World, name: str, cluster: str = "", updates: dict[str, Any] | None = None) -> ApiProcess:
    path = world.directory / f"{name}.yaml"
    path.write_text(f"{CLUSTER}{SWITCH}{cluster}")
    return world.api(name, cluster_config=str(path), updates=QUICK if updates is None else updates)


@pytest.fixture(scope="module")
def api(world: World) -> Iterator[ApiProcess]:
    with replica(world, "updates") as api:
        yield api


@pytest.fixture(scope="module")
def other(world: World) -> Iterator[ApiProcess]:
    """A second replica."""
    with replica(world, "other-updates") as api:
        yield api


@pytest.fixture(scope="module")
def by_roles(world: World) -> Iterator[ApiProcess]:
    with replica(world, "updates-by-roles", "security: {authz: {type: rbac}}\n") as api:
        yield api
