"""The model registry as the unmodified client sees it: ``det model``, and the SDK."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.harness.api import ApiProcess
from tests.harness.client import Client
from tests.harness.det import Det
from tests.integration.api.models.registry import new_checkpoint, new_model
from tests.integration.api.workspaces.test_workspaces import workspace
from tests.integration.api.world import World

MISSING = "00000000-0000-4000-8000-000000000000"
COMMANDS = (
    ("model", "list"),
    ("model", "list", "--json"),
    ("model", "create", "x"),
    ("model", "create", "x", "--json"),
    ("model", "describe", "nobody"),
    ("model", "describe", "nobody", "--json"),
    ("model", "list-versions", "nobody"),
    ("model", "list-versions", "nobody", "--json"),
    ("model", "register-version", "nobody", MISSING),
    ("model", "register-version", "nobody", MISSING, "--json"),
    ("model", "move", "nobody", "-w", "Uncategorized"),
    ("model", "delete", "nobody"),
)


def test_a_model_lives_and_dies(det: Det, admin: httpx.Client, world: World) -> None:
    workspace(admin, "Life")
    _, uuid = new_checkpoint(world)
    assert "digits" in det("model", "create", "life", "-w", "Life", "--description", "digits").out
    assert uuid in det("model", "register-version", "life", uuid).out
    registered = det("model", "register-version", "life", uuid, "--json").json()["modelVersion"]
    assert (registered["version"], registered["checkpoint"]["uuid"]) == (2, uuid)
    for shown in (
        det("model", "describe", "life").out,
        det("model", "describe", "life", "--version", "1").out,
        det("model", "list-versions", "life").out,
    ):
        assert uuid in shown
        assert "0.25" in shown, "what its validation said"
    assert det("model", "describe", "life", "--json").json()["description"] == "digits"
    assert len(det("model", "list-versions", "life", "--json").json()["modelVersions"]) == 2
    det("model", "move", "life", "-w", "Uncategorized")
    assert "life" in det("model", "list", "-w", "Uncategorized").out
    assert [model["name"] for model in det("model", "list", "-w", "Life,life", "--json").json()] == []
    det("model", "delete", "life")
    assert "not found" in det.fails("model", "describe", "life").err


def test_lists_in_every_order(det: Det) -> None:
    made = det("model", "create", "ordered", "--json").json()
    for sort in ("name", "description", "creation_time", "last_updated_time"):
        for order in ("asc", "desc"):
            listed = det("model", "list", "--sort-by", sort, "--order-by", order, "--json").json()
            assert made["id"] in [model["id"] for model in listed]


@pytest.mark.parametrize("command", [one for one in COMMANDS if "nobody" in one], ids=" ".join)
def test_what_is_not_there_is_said(det: Det, command: tuple[str, ...]) -> None:
    ended = det.fails(*command)
    assert 'model "nobody" not found' in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_without_a_login(api: ApiProcess, tmp_path: Path, command: tuple[str, ...]) -> None:
    ended = Det(url=api.url, home=tmp_path, username="ghost").fails(*command, answers=["wrong"])
    assert "Unauthenticated" in ended.err
    assert "Traceback" not in ended.err


def test_what_is_wrong_is_said(det: Det, admin: httpx.Client, world: World) -> None:
    new_model(admin, "twice")
    _, gone = new_checkpoint(world, state="DELETED")
    refusals = {
        ("model", "create", "twice"): "avoid names equal to other models",
        ("model", "create", "a/b"): "cannot have slashes",
        ("model", "create", "lost", "-w", "nowhere"): "workspace 'nowhere' not found",
        ("model", "move", "twice", "-w", "nowhere"): "workspace 'nowhere' not found",
        ("model", "describe", "twice", "--version", "7"): 'version 7 for model "twice" not found',
        ("model", "register-version", "twice", MISSING): "not found",
        ("model", "register-version", "twice", gone): "only a COMPLETED one can be registered",
    }
    for command, text in refusals.items():
        ended = det.fails(*command)
        assert text in ended.err
        assert "Traceback" not in ended.err


def test_checkpoints_of_versions_are_not_deleted(det: Det, admin: httpx.Client, world: World) -> None:
    new_model(admin, "kept")
    experiment, uuid = new_checkpoint(world)
    det("model", "register-version", "kept", uuid)
    for command in (
        ("checkpoint", "delete", uuid, "--yes"),
        ("checkpoint", "rm", uuid, "--glob", "*.pt", "--yes"),
        ("checkpoint", "rm", uuid),
    ):
        assert f"in the model registry and cannot be deleted: {uuid}" in det.fails(*command).err
    refusal = det.fails("experiment", "delete", str(experiment), "--yes").err
    assert "checkpoints are registered as model versions" in refusal


def test_metadata_without_its_steps_is_shown_all_the_same(det: Det, admin: httpx.Client, world: World) -> None:
    new_model(admin, "stepless")
    _, uuid = new_checkpoint(world)
    det("model", "register-version", "stepless", uuid)
    changed = admin.post(f"/api/v1/checkpoints/{uuid}/metadata", json={"checkpoint": {"metadata": {"note": 1}}})
    assert changed.json()["checkpoint"]["metadata"] == {"note": 1}
    assert '"steps_completed": 3' in det("model", "describe", "stepless").out


def test_the_sdk(api: ApiProcess, world: World, tmp_path: Path) -> None:
    uuids = [new_checkpoint(world)[1] for _ in range(2)]
    seen = Client(api.url, tmp_path).sdk(
        """
first, second = sys.argv[1:]
made = client.create_model("sdk", "described", {"a": 1})
made.add_metadata({"b": 2}); made.remove_metadata(["a"])
made.set_labels(["y, z", "y, z", "x"]); made.set_description("better")
none_yet = made.get_version()
one, two = made.register_version(first), made.register_version(second)
one.set_name("old"); one.set_notes("noted"); one.reload()
made.archive(); archived = client.get_model("sdk").archived
made.unarchive(); made.reload()
seen = {
    "none_yet": none_yet is None,
    "same": client.get_model(made.model_id).name,
    "metadata": made.metadata, "labels": made.labels, "description": made.description,
    "archived": [archived, made.archived],
    "latest": made.get_version().checkpoint.uuid == second,
    "first": [made.get_version(1).checkpoint.uuid == first, one.name, one.notes, one.checkpoint.training.trial_id > 0],
    "versions": [version.model_version for version in made.list_versions()],
    "ascending": [version.model_version for version in made.list_versions(client.OrderBy.ASC)],
    "metrics": list(one.iter_metrics()),
    "known": "y, z" in client.get_model_labels(),
    "listed": [model.name for model in client.list_models(name="SDK", description="BETTER")],
}
two.delete()
seen["left"] = [version.model_version for version in made.list_versions()]
made.delete()
seen["gone"] = client.list_models(name="sdk") == []
result(seen)
""",
        *uuids,
    )
    assert seen == {
        "none_yet": True,
        "same": "sdk",
        "metadata": {"b": 2},
        "labels": ["y, z", "x"],
        "description": "better",
        "archived": [True, False],
        "latest": True,
        "first": [True, "old", "noted", True],
        "versions": [2, 1],
        "ascending": [1, 2],
        "metrics": [],
        "known": True,
        "listed": ["sdk"],
        "left": [1],
        "gone": True,
    }


def test_every_endpoint_answers_in_the_shape_that_the_bindings_read(
    api: ApiProcess, world: World, tmp_path: Path
) -> None:
    _, uuid = new_checkpoint(world)
    seen = Client(api.url, tmp_path).sdk(
        """
from determined.common.api import bindings as b
session, uuid = client.list_users()[0]._session, sys.argv[1]
workspace = b.post_PostWorkspace(session, body=b.v1PostWorkspaceRequest(name="bound models")).workspace.id
model = b.post_PostModel(session, body=b.v1PostModelRequest(name="bound", labels=["l"], metadata=None)).model
version = b.post_PostModelVersion(
    session, modelName="bound", body=b.v1PostModelVersionRequest(checkpointUuid=uuid, modelName="bound")
).modelVersion
patched = b.patch_PatchModelVersion(
    session, modelName="bound", modelVersionNum=1, body=b.v1PatchModelVersion(labels=["a"], comment="c")
).modelVersion
b.post_MoveModel(
    session, modelName="bound", body=b.v1MoveModelRequest(destinationWorkspaceId=workspace, modelName="bound")
)
b.post_ArchiveModel(session, modelName="bound")
b.post_UnarchiveModel(session, modelName="bound")
renamed = b.patch_PatchModel(session, modelName="bound", body=b.v1PatchModel(name="bound 2")).model
versions = b.get_GetModelVersions(session, modelName="bound 2")
seen = {
    "model": [model.name, list(model.labels), model.metadata, model.numVersions],
    "version": [version.version, version.checkpoint.uuid == uuid, version.username],
    "patched": [list(patched.labels), patched.comment],
    "renamed": [renamed.workspaceId == workspace, renamed.numVersions, renamed.username],
    "versions": [versions.model.id == model.id, versions.pagination.total, len(versions.modelVersions)],
    "one": b.get_GetModelVersion(session, modelName="bound 2", modelVersionNum=1).modelVersion.model.name,
    "by_id": b.get_GetModel(session, modelName=str(model.id)).model.name,
    "listed": b.get_GetModels(session, id=model.id, archived=False, users=["determined"]).pagination.total,
    "labels": list(b.get_GetModelLabels(session, workspaceId=workspace).labels),
    "metrics": len(b.get_GetTrialMetricsByModelVersion(session, modelName="bound 2", modelVersionNum=1).metrics),
}
b.delete_DeleteModelVersion(session, modelName="bound 2", modelVersionNum=1)
b.delete_DeleteModel(session, modelName="bound 2")
result(seen)
""",
        uuid,
    )
    assert seen == {
        "model": ["bound", ["l"], {}, 0],
        "version": [1, True, "determined"],
        "patched": [["a"], "c"],
        "renamed": [True, 1, "determined"],
        "versions": [True, 1, 1],
        "one": "bound 2",
        "by_id": "bound 2",
        "listed": 1,
        "labels": ["l"],
        "metrics": 0,
    }
