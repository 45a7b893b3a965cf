"""Rights of launchers: in the namespaces of their pools always, in the cluster if wanted, elsewhere never."""

from __future__ import annotations

from typing import Any

import yaml

from tests.harness.helm import CHART, Release
from tests.integration.helm.conftest import Rendered


def rules(file: str) -> list[Any]:
    return [rule for part in yaml.safe_load_all((CHART / "rights" / file).read_text()) for rule in part["rules"]]


def bound(release: Release) -> dict[str, set[str]]:
    """Namespace -> service accounts with a Role there."""
    found: dict[str, set[str]] = {}
    for manifest in release.manifests:
        if manifest["kind"] == "RoleBinding" and manifest["metadata"]["name"].startswith("resolute-launcher"):
            assert {subject["namespace"] for subject in manifest["subjects"]} == {"ml"}
            names = {subject["name"] for subject in manifest["subjects"]}
            found.setdefault(manifest["metadata"]["namespace"], set()).update(names)
    return found


def test_each_launcher_has_rights_where_the_tasks_of_its_pool_run(rendered: Rendered) -> None:
    release = rendered("two_pools")
    large, other = release.launcher_of("A100"), release.launcher_of("cpu_only")
    assert bound(release) == {"research": {large}, "batch": {other}, "team-a": {large, other}}
    roles = [found for found in release.manifests if found["kind"] == "Role"]
    assert all(role["rules"] == rules("role.yaml") for role in roles)
    accounts = {found["metadata"]["name"] for found in release.manifests if found["kind"] == "ServiceAccount"}
    assert {large, other} <= accounts


def test_without_a_namespace_of_their_own_tasks_run_beside_the_installation(rendered: Rendered) -> None:
    release = rendered("defaults")
    assert bound(release) == {"ml": {release.launcher_of("default")}}


def test_rights_in_the_cluster_are_those_that_were_asked_for(rendered: Rendered) -> None:
    own, workspaces = rules("cluster-role.yaml"), rules("cluster-role-workspaces.yaml")
    assert rendered("defaults").get("ClusterRole", "determined-master")["rules"] == own
    assert rendered("workspaces").get("ClusterRole", "determined-master")["rules"] == own + workspaces


def test_with_a_gateway_launchers_may_use_that_one(rendered: Rendered) -> None:
    release = rendered("task_gateway")
    role = release.get("Role", "resolute-launcher-gateway")
    assert role["metadata"]["namespace"] == "gateways"
    assert [rule["resourceNames"] for rule in role["rules"]] == [["tasks"]]
    assert rules("gateway-role.yaml")[-1] in release.get("Role", release.launcher_of("default"))["rules"]


def test_launchers_of_other_clusters_have_no_rights_in_this_one(rendered: Rendered) -> None:
    release = rendered("more_clusters")
    assert bound(release) == {"ml": {release.launcher_of("default")}}
    pod = release.get("Deployment", release.launcher_of("there-pool"))["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False


def test_a_pool_with_a_launcher_elsewhere_has_a_user_and_no_launcher(rendered: Rendered) -> None:
    release = rendered("remote_pool")
    assert "launcher-far_away" in release.secret("resolute-nats-config", "nats.conf")
    assert "pool_name: far.away" in release.secret("determined-master-config", "master.yaml")
    launchers = [name for kind, name in release.by_name if kind == "Deployment" and "launcher" in name]
    assert launchers == [release.launcher_of("default")]
