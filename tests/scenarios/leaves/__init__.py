"""Every leaf command of ``det`` outside of ``det deploy``, as it is typed, by noun."""

from __future__ import annotations

from typing import Final

from tests.scenarios.leaves import cluster, experiments, people, tasks, workspaces
from tests.scenarios.leaves.leaf import Leaf

LEAVES: Final[tuple[Leaf, ...]] = (
    *experiments.LEAVES,
    *tasks.LEAVES,
    *workspaces.LEAVES,
    *people.LEAVES,
    *cluster.LEAVES,
)
