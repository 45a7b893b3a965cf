"""Values files, each rendered once in a session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from tests.conftest import NEEDS_CLUSTER
from tests.harness.helm import Release, find_helm, render
from tests.harness.kubectl import Kubectl

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


@pytest.fixture(scope="module")
def restricted() -> Iterator[Kubectl]:
    """``kubectl`` in a new namespace that takes restricted pods only."""
    if not os.environ.get("KUBECONFIG"):
        pytest.skip(NEEDS_CLUSTER)
    namespace = f"helm-{uuid4().hex[:8]}"
    cluster = Kubectl(Path(os.environ["KUBECONFIG"]))
    cluster("create", "namespace", namespace)
    try:
        cluster("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
        yield Kubectl(cluster.kubeconfig, namespace)
    finally:
        cluster("delete", "namespace", namespace, "--wait=false")
