"""Every function of the client's bindings, which is every endpoint of the reference, with what it is called with."""

from __future__ import annotations

from typing import Final

from tests.scenarios.bindings import cluster, experiments, models, people, tasks, training, workspaces
from tests.scenarios.bindings.call import Call

CALLS: Final[tuple[Call, ...]] = (
    *experiments.CALLS,
    *training.CALLS,
    *models.CALLS,
    *tasks.CALLS,
    *workspaces.CALLS,
    *cluster.CALLS,
    # The last, because it ends with a logout.
    *people.CALLS,
)
