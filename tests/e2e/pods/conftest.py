"""The whole system with its tasks as pods of nodes that run containers, in a namespace of its own.

Acceptance items B21 to B26 of docs/reference/kubernetes.md 20, as far as they concern trials and checkpoint GC.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness.client import Client
from tests.harness.kubectl import Kubectl, new_namespace
from tests.harness.looking import Looking
from tests.harness.whole_system import WholeSystem, running_system


@dataclass(frozen=True)
class OnCluster:
    """A system, and the namespace that its tasks run in."""

    system: WholeSystem
    kubectl: Kubectl

    def pods_of(self, experiment: int) -> set[str]:
        return self.kubectl.names("pods", f"determined.ai/experiment_id={experiment}")


@contextmanager
def system_on(kubeconfig: Path, image: str) -> Iterator[OnCluster]:
    with (
        new_namespace(kubeconfig) as kubectl,
        running_system(
            kubeconfig=str(kubeconfig), image=image, shipper="builtin", namespace=kubectl.namespace
        ) as system,
    ):
        yield OnCluster(system, kubectl)


@pytest.fixture(scope="session")
def on_cluster(kubeconfig: Path, task_image: str) -> Iterator[OnCluster]:
    """Shared by all tests: what they change, they put back; they kill nothing."""
    with system_on(kubeconfig, task_image) as started:
        yield started


# Of a module, so that one with a system of its own has these for it.
@pytest.fixture(scope="module")
def kubectl(on_cluster: OnCluster) -> Kubectl:
    return on_cluster.kubectl


@pytest.fixture(scope="module")
def det(on_cluster: OnCluster) -> Client:
    """The unmodified client, logged in as ``determined``."""
    return on_cluster.system.det()


@pytest.fixture(scope="module")
def admin(on_cluster: OnCluster) -> Client:
    client = on_cluster.system.det("admin")
    client("user", "login", "admin", answers=("",))
    return client


@pytest.fixture(scope="module")
def look(on_cluster: OnCluster) -> Iterator[Looking]:
    with on_cluster.system.http() as http:
        yield Looking(http)
