"""Values files, each rendered once in a run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
import yaml

from tests.conftest import NEEDS_CLUSTER
from tests.harness.helm import CHART, Release, find_helm, render, run_helm
from tests.harness.kubectl import Kubectl
from tests.integration.helm.renderings import Renderings

VALUES: Final = Path(__file__).parent / "values"
FOR_UPGRADES: Final = ("database_snapshot", "database_restore")
"""Values that mean something in an upgrade only."""

BESIDE: Final = ("--set", "tasks.namespace=ml")
"""Without a cluster to ask, the chart has to be told where tasks run: in most files, beside the installation."""

Rendered = Callable[[str], Release]


def options_for(name: str) -> list[str]:
    """What the values file of this name is rendered with."""
    values = yaml.safe_load((VALUES / f"{name}.yaml").read_text())
    tasks, manager = (values.get(section) or {} for section in ("tasks", "resourceManager"))
    says_where = tasks.get("namespace") or manager.get("defaultNamespace")
    return [*(["--is-upgrade"] if name in FOR_UPGRADES else []), *(() if says_where else BESIDE)]


def render_values(name: str) -> Release:
    return render(VALUES / f"{name}.yaml", *options_for(name))


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    """A values file's name -> what the chart makes of it."""
    find_helm()
    own = tmp_path_factory.getbasetemp()
    of_the_run = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    return Renderings(of_the_run / "renderings", render_values)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``any_values`` is each of the values files."""
    if "any_values" in metafunc.fixturenames:
        metafunc.parametrize("any_values", sorted(path.stem for path in VALUES.glob("*.yaml")))


@pytest.fixture(scope="session")
def chart_with_notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart with its notes as an object, since only an installation shows them."""
    chart: Path = tmp_path_factory.mktemp("notes") / "chart"
    shutil.copytree(CHART, chart)
    notes = (chart / "templates" / "NOTES.txt").rename(chart / "templates" / "notes.yaml")
    text = notes.read_text()
    notes.write_text(
        '{{- define "notes" }}' + text + "{{- end }}\n"
        '{apiVersion: v1, kind: Notes, metadata: {name: notes}, text: {{ include "notes" . | toRawJson }}}\n'
    )
    return chart


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


def helm(kubectl: Kubectl, *arguments: str) -> str:
    """A command without hooks: jobs end only where pods run."""
    done = run_helm(
        *arguments, "--no-hooks", "-n", kubectl.namespace, "--kubeconfig", str(kubectl.kubeconfig), timeout_s=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
