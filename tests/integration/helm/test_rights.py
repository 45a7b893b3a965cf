"""Rights of launchers: in the namespaces of their pools always, in the cluster if wanted, elsewhere never."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness.helm import CHART, Release, render
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


def test_a_namespace_of_their_own_is_made_and_outlives_the_release(rendered: Rendered) -> None:
    release = rendered("own_namespace_defaults")
    assert bound(release) == {"rel-tasks": {release.launcher_of("default")}}
    made = release.get("Namespace", "rel-tasks")
    assert made["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert made["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "baseline"
    assert "default_namespace: rel-tasks" in release.secret("determined-master-config", "master.yaml")
    quota = release.get("ResourceQuota", "resolute-objects")
    assert quota["metadata"]["namespace"] == "rel-tasks"
    assert all(name.startswith("count/") for name in quota["spec"]["hard"])


def test_while_a_pool_moves_its_launcher_has_rights_in_both_namespaces(rendered: Rendered) -> None:
    release = rendered("own_namespace")
    own, other = release.launcher_of("default"), release.launcher_of("elsewhere")
    assert bound(release) == {"rel-tasks": {own}, "ml": {own}, "research": {other}}
    former = "RESOLUTE_KUBERNETES__FORMER_NAMESPACES"
    assert release.environment("Deployment", own)[former] == '["ml"]'
    assert former not in release.environment("Deployment", other)
    made = release.get("Namespace", "rel-tasks")
    assert made["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert release.get("ResourceQuota", "resolute-objects")["spec"]["hard"]["count/jobs.batch"] == "7"
    assert "count/services" not in release.get("ResourceQuota", "resolute-objects")["spec"]["hard"]


@pytest.mark.parametrize(
    "needs",
    [
        {"checkpointStorage": {"type": "shared_fs", "hostPath": "/checkpoints"}},
        {"taskContainerDefaults": {"bindMounts": [{"host_path": "/data", "container_path": "/data"}]}},
        {"taskContainerDefaults": {"gpuPodSpec": {"spec": {"volumes": [{"name": "a", "hostPath": {"path": "/a"}}]}}}},
        {"taskContainerDefaults": {"networkMode": "host"}},
    ],
)
def test_no_level_is_enforced_where_an_administrator_needs_more(needs: dict[str, Any], tmp_path: Path) -> None:
    storage = {"type": "azure", "container": "models", "connection_string": "a"}
    path = tmp_path / "values.yaml"
    values = {"maxSlotsPerPod": 4, "tasks": {"namespace": "t"}, "checkpointStorage": storage, **needs}
    path.write_text(yaml.safe_dump(values))
    made = render(path).get("Namespace", "t")
    assert "pod-security.kubernetes.io/enforce" not in made["metadata"]["labels"]


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
