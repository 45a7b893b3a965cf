"""Workspaces and projects, as the unmodified client sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.api import ApiProcess
from tests.harness.det import Det


@pytest.fixture
def other(api: ApiProcess, tmp_path: Path) -> Det:
    """The client of ``determined``, who administers nothing."""
    return Det(url=api.url, home=tmp_path)


def described(det: Det, name: str) -> dict[str, Any]:
    found: dict[str, Any] = det("workspace", "describe", name, "--json").json()
    return found


def names(det: Det, *arguments: str) -> list[str]:
    return [one["name"] for one in det("workspace", "list", "--json", *arguments).json()]


def test_a_workspace_lives_and_dies(det: Det) -> None:
    det("workspace", "create", "lab")
    assert "lab" in names(det)
    assert described(det, "lab")["username"] == "admin"
    det("workspace", "edit", "lab", "--name", "Lab 2")
    assert "Lab 2" in names(det)
    det("workspace", "delete", "Lab 2", "--yes")
    assert "Lab 2" not in names(det)


def test_storage_and_pools_belong_to_a_workspace(det: Det) -> None:
    storage = '{"type": "s3", "bucket": "b", "access_key": "AKIA", "secret_key": "s3cret"}'
    det(
        *("workspace", "create", "stored"),
        *("--checkpoint-storage-config", storage),
        *("--default-compute-pool", "gpus", "--default-aux-pool", "cpus"),
    )
    seen = described(det, "stored")
    assert seen["checkpointStorageConfig"]["bucket"] == "b"
    assert seen["checkpointStorageConfig"]["secret_key"] == "********"
    assert (seen["defaultComputePool"], seen["defaultAuxPool"]) == ("gpus", "cpus")
    pools = det("workspace", "list-pools", "stored").out
    assert "gpus" in pools
    assert "cpus" in pools


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--checkpoint-storage-config", '{"type": "s3"}'], "bucket"),
        (["--default-compute-pool", "nowhere"], "does not exist or is not available"),
    ],
)
def test_what_cannot_work_is_refused(det: Det, arguments: list[str], text: str) -> None:
    assert text in det.fails("workspace", "create", "broken", *arguments).err


def test_names_differ_by_more_than_case(det: Det) -> None:
    det("workspace", "create", "Cased")
    assert "avoid names equal to other workspaces" in det.fails("workspace", "create", "cASED").err


def test_names_are_no_patterns(det: Det) -> None:
    det("workspace", "create", "ab")
    det("workspace", "create", "a_")
    assert described(det, "a_")["name"] == "a_"


def test_archived_workspaces_cannot_change(det: Det) -> None:
    det("workspace", "create", "old")
    det("project", "create", "old", "inside")
    det("workspace", "archive", "old")
    assert "archived" in det.fails("project", "create", "old", "late").err
    assert "archived" in det.fails("workspace", "edit", "old", "--name", "new").err
    (project,) = det("project", "list", "old", "--json").json()
    assert project["archived"] is True
    det("workspace", "unarchive", "old")
    det("project", "create", "old", "late")


def test_the_first_workspace_cannot_be_deleted(det: Det) -> None:
    assert "immutable" in det.fails("workspace", "delete", "Uncategorized", "--yes").err


def test_only_owners_and_administrators_change_a_workspace(det: Det, other: Det) -> None:
    det("workspace", "create", "private")
    assert (
        "only admins may change other user's workspaces"
        in other.fails("workspace", "edit", "private", "--name", "mine").err
    )
    other("workspace", "create", "own")
    other("workspace", "edit", "own", "--name", "own2")
    other("project", "create", "private", "guest")
    det("project", "create", "private", "hosts")
    assert "non admin users need to own" in other.fails("project", "delete", "private", "hosts", "--yes").err
    other("project", "delete", "private", "guest", "--yes")


def test_the_project_that_was_named_is_the_one_that_changes(det: Det) -> None:
    det("workspace", "create", "twins")
    for name in ("Vision", "vision"):
        det("project", "create", "twins", name)
    det("project", "edit", "twins", "vision", "--description", "the small one")
    det("project", "archive", "twins", "vision")
    shown = {one["name"]: one for one in det("project", "list", "twins", "--json").json()}
    assert (shown["vision"]["description"], shown["vision"]["archived"]) == ("the small one", True)
    assert (shown["Vision"]["description"], shown["Vision"]["archived"]) == ("", False)
    det("project", "delete", "twins", "vision", "--yes")
    assert [one["name"] for one in det("project", "list", "twins", "--json").json()] == ["Vision"]
    det("project", "delete", "twins", "vISION", "--yes")
    assert det("project", "list", "twins", "--json").json() == []


def test_a_project_lives_and_dies(det: Det) -> None:
    det("workspace", "create", "home")
    created = det("project", "create", "home", "vision", "--description", "eyes", "--key", "eye").out
    assert "EYE" in created
    assert "already in use" in det.fails("project", "create", "home", "vision").err
    det("project", "edit", "home", "vision", "--new_name", "sight", "--description", "better eyes")
    (project,) = det("project", "list", "home", "--json").json()
    assert (project["name"], project["description"]) == ("sight", "better eyes")
    assert "sight" in det("project", "describe", "home", "sight").out
    det("project", "archive", "home", "sight")
    assert "archived" in det.fails("project", "edit", "home", "sight", "--new_name", "x").err
    det("project", "unarchive", "home", "sight")
    det("project", "delete", "home", "sight", "--yes")
    assert det("project", "list", "home", "--json").json() == []
