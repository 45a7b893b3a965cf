"""Groups and roles, as the unmodified client handles them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.api import ApiProcess
from tests.harness.det import Det
from tests.integration.api.world import CLUSTER, World

pytestmark = pytest.mark.xdist_group("roles_with_client")


@pytest.fixture(scope="module")
def api(world: World) -> Iterator[ApiProcess]:
    path = world.directory / "with_roles.yaml"
    path.write_text(f"{CLUSTER}security: {{authz: {{rbac_ui_enabled: true}}}}\n")
    with world.api("with-roles", cluster_config=str(path)) as api:
        yield api


def test_groups(det: Det) -> None:
    for name in ("gr-ann", "gr-ben"):
        det("user", "create", name, "--password", "Passw0rd!")
    assert "gr-ann was added" in det("user-group", "create", "team", "--add-user", "gr-ann").out
    det("user-group", "add-user", "team", "gr-ben")
    described = det("user-group", "describe", "team", "--json").json()
    assert [user["username"] for user in described["users"]] == ["gr-ann", "gr-ben"]
    det("user-group", "remove-user", "team", "gr-ann")
    det("user-group", "change-name", "team", "crew")
    listed = det("user-group", "list", "--groups-user-belongs-to", "gr-ben", "--json").json()
    assert [each["group"]["name"] for each in listed["groups"]] == ["crew"]
    assert "crew" in det("user-group", "list").out
    det("user-group", "delete", "crew", "--yes")
    det.fails("user-group", "describe", "crew")


def test_roles(det: Det) -> None:
    det("user", "create", "ro-ann", "--password", "Passw0rd!")
    det("user-group", "create", "ro-team", "--add-user", "ro-ann")
    det("workspace", "create", "ro-space")
    det("rbac", "assign-role", "Viewer", "--username-to-assign", "ro-ann")
    det("rbac", "assign-role", "Editor", "--group-name-to-assign", "ro-team", "--workspace-name", "ro-space")
    det.fails("rbac", "assign-role", "Viewer", "--username-to-assign", "ro-ann")
    assert {"Viewer", "Editor"} <= set(det("rbac", "list-users-roles", "ro-ann").out.split())
    assert "ro-space" in det("rbac", "list-groups-roles", "ro-team").out
    assert "ro-team" in det("rbac", "describe-role", "Editor").out
    assert "ClusterAdmin" in det("rbac", "list-roles").out
    assert "ClusterAdmin" in det("rbac", "list-roles", "--limit", "1000").out
    assert "ClusterAdmin" not in det("rbac", "list-roles", "--exclude-global-roles").out
    assert "create experiment" in det("rbac", "my-permissions").out
    members = det("workspace", "list-members", "ro-space").out
    assert "ro-team" in members
    assert "Editor" in members
    for output in ("--json", "--yaml", "--csv"):
        assert "ro-team" in det("workspace", "list-members", "ro-space", output).out
    det("rbac", "unassign-role", "Editor", "--group-name-to-assign", "ro-team", "--workspace-name", "ro-space")
    assert "ro-team" not in det("workspace", "list-members", "ro-space").out


def test_without_roles_the_client_says_so(world: World, tmp_path: Path) -> None:
    with world.api("without-roles") as api:
        det = Det(url=api.url, home=tmp_path)
        det("user", "login", "admin", answers=[""])
        assert "RBAC commands require" in det.fails("rbac", "my-permissions").err
