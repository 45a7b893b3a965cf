"""The whole system with its tasks as pods of an image that has JupyterLab, TensorBoard and sshd."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.interactive.users import User
from tests.e2e.pods.conftest import OnCluster, system_on
from tests.harness.image_stores import find_image_store

IMAGE: Final = "local/interactive:1"


@pytest.fixture(scope="session")
def interactive_image() -> str:
    """An image that the node has, with determined==0.38.1, jupyterlab, tensorboard and openssh-server."""
    if named := os.environ.get("RESOLUTE_TEST_INTERACTIVE_IMAGE"):
        return named
    archive = Path(os.environ.get("KUBE_IMAGES") or Path.home() / ".cache" / "kube-images") / "interactive.tar"
    if not archive.exists():
        pytest.skip("needs an image with JupyterLab and TensorBoard: `tests/cluster/interactive-image` builds one")
    find_image_store().load(archive)
    return IMAGE


@pytest.fixture(scope="session")
def on_cluster(kubeconfig: Path, interactive_image: str) -> Iterator[OnCluster]:
    with system_on(kubeconfig, interactive_image) as started:
        yield started


@pytest.fixture(scope="session")
def user(on_cluster: OnCluster) -> Iterator[User]:
    with on_cluster.system.http() as http:
        somebody = User(on_cluster.system, http)
        yield somebody
        somebody.kill_all()
