"""``resolute reset`` leaves nothing in a cluster, in whatever namespaces workspaces had their tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy import cli
from tests.harness.kubectl import Kubectl, new_namespace
from tests.harness.waiting import wait_until
from tests.harness.whole_system import running_system
from tests.programs import submit

pytestmark = pytest.mark.cluster

PATIENCE_S = 120


def test_reset_ends_tasks_wherever_workspaces_are_bound_to(kubeconfig: Path) -> None:
    cluster = Kubectl(kubeconfig)
    with new_namespace(kubeconfig) as pool, new_namespace(kubeconfig) as team:
        on_it = {"kubeconfig": str(kubeconfig), "namespace": pool.namespace, "image": "nothing", "shipper": "builtin"}
        with running_system(**on_it) as system:
            det = system.det("admin")
            det("user", "login", "admin", answers=("",))
            det("workspace", "create", "team", "--namespace", team.namespace)
            out = det("workspace", "create", "lab", "--auto-create-namespace")
            lab = Kubectl(kubeconfig, out.split("is bound to namespace ")[1].split()[0])
            for workspace in ("team", "lab"):
                det("project", "create", workspace, "inside")
                submit(det, "sleep 1000", workspace=workspace, project="inside")
            wait_until(lambda: team.names("jobs") and lab.names("jobs"), timeout_s=PATIENCE_S, what="both are launched")
            with pytest.raises(SystemExit, match="0"):
                cli.main(["--state", str(system.layout.root), "reset", "--yes"])
        wait_until(lambda: not team.names("jobs"), timeout_s=PATIENCE_S, what="the task is gone")
        gone = lambda: not cluster("get", "namespace", lab.namespace, "--ignore-not-found", "-o", "name")  # noqa: E731
        wait_until(gone, timeout_s=PATIENCE_S, what="the namespace is gone")
        assert not team.names("configmaps", "resolute/cluster-id")
        assert not pool.names("configmaps", "resolute/cluster-id")
