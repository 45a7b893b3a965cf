"""What somebody with a role in one workspace can reach of another: nothing, whichever way is taken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from libs.db.engine import Connection
from libs.db.tables.tasks import generic_tasks
from tests.builders import (
    insert_checkpoint,
    insert_experiment,
    insert_generic_task,
    insert_project,
    insert_trial,
    insert_workspace,
)
from tests.integration.api.access.persons import Persons, api_with
from tests.integration.api.world import World, two_nodes

EDITOR, VIEWER = 5, 4
CONFIG = {"name": "e", "entrypoint": "true", "searcher": {"name": "single", "metric": "loss", "max_length": 1}}


@dataclass(frozen=True)
class Place:
    """A workspace, a single experiment of it that has ended, and a checkpoint of that."""

    workspace: int
    project: int
    experiment: int
    trial: int
    checkpoint: str


async def _place(connection: Connection, name: str) -> Place:
    workspace = await insert_workspace(connection, name=name)
    project = await insert_project(connection, workspace_id=workspace, name="p")
    experiment = await insert_experiment(connection, project_id=project, state="COMPLETED", config=CONFIG)
    trial = await insert_trial(connection, experiment_id=experiment, project_id=project, state="COMPLETED")
    uuid = await insert_checkpoint(connection, trial_id=trial, experiment_id=experiment)
    return Place(workspace, project, experiment, trial, uuid)


@dataclass(frozen=True)
class Site:
    persons: Persons
    own: Place
    foreign: Place

    @property
    def editor(self) -> httpx.Client:
        """Edits in ``own`` and has no role in ``foreign``."""
        return self.persons.clients["editor"]

    @property
    def viewer(self) -> httpx.Client:
        """Edits in ``own`` and views in ``foreign``."""
        return self.persons.clients["viewer"]


@pytest.fixture(scope="module")
def site(world: World) -> Iterator[Site]:
    world.publish(two_nodes())
    with ExitStack() as stack, api_with(world, "rbac") as api:
        persons = Persons(world, api, stack)
        own = world.in_database(lambda c: _place(c, "own"))
        foreign = world.in_database(lambda c: _place(c, "foreign"))
        for name in ("editor", "viewer"):
            persons.add(name)
            persons.give(name, EDITOR, own.workspace)
        persons.give("viewer", VIEWER, foreign.workspace)
        yield Site(persons, own, foreign)


@pytest.mark.parametrize("spelling", [str.lower, str.upper, "{{{}}}".format, "urn:uuid:{}".format])
def test_a_checkpoint_is_registered_by_those_who_see_it_however_its_uuid_is_written(
    site: Site, spelling: object
) -> None:
    assert callable(spelling)
    name = f"model-{spelling('x')}"
    made = site.editor.post("/api/v1/models", json={"name": name, "workspaceName": "own"})
    assert made.status_code == 200, made.text
    path = f"/api/v1/models/{made.json()['model']['id']}/versions"
    reply = site.editor.post(path, json={"checkpointUuid": spelling(site.foreign.checkpoint)})
    assert reply.status_code == 404, reply.text
    assert site.editor.post(path, json={"checkpointUuid": spelling(site.own.checkpoint)}).status_code == 200


@pytest.mark.parametrize("key", ["source_trial_id", "source_checkpoint_uuid"])
def test_training_goes_on_from_what_one_may_read(site: Site, key: str) -> None:
    source = site.foreign.trial if key == "source_trial_id" else site.foreign.checkpoint
    body = {"id": site.own.experiment, "overrideConfig": f"searcher: {{{key}: {source}}}"}
    reply = site.editor.post("/api/v1/experiments/continue", json=body)
    assert reply.status_code == 404, reply.text


def test_a_tree_is_killed_from_its_root_by_those_who_control_that(site: Site) -> None:
    async def plant(connection: Connection) -> tuple[str, str]:
        root = await insert_generic_task(connection, workspace_id=site.foreign.workspace)
        child = await insert_generic_task(connection, parent=root, root=root, workspace_id=site.own.workspace)
        return root, child

    root, child = site.persons.world.in_database(plant)

    async def states(connection: Connection) -> set[str]:
        query = select(generic_tasks.c.state).where(generic_tasks.c.task_id.in_([root, child]))
        return set((await connection.execute(query)).scalars())

    path, everything = f"/api/v1/tasks/{child}/kill", {"taskId": child, "killFromRoot": True}
    assert site.editor.post(path, json=everything).status_code == 404
    assert site.viewer.post(path, json=everything).status_code == 403
    assert site.persons.world.in_database(states) == {"ACTIVE"}
    assert site.viewer.post(path, json={"taskId": child}).status_code == 200
    assert site.persons.world.in_database(states) == {"ACTIVE", "STOPPING_CANCELED"}


def test_only_administrators_leave_files_behind(site: Site) -> None:
    path = f"/api/v1/experiments/{site.own.experiment}?force=true"
    refused = site.editor.delete(path)
    assert refused.status_code == 403, refused.text
    assert "PERMISSION_TYPE_UPDATE_MASTER_CONFIG" in refused.text


def test_webhooks_tell_nobody_of_a_workspace(site: Site) -> None:
    webhook = {
        "name": "hook",
        "url": "https://example.org",
        "webhookType": "WEBHOOK_TYPE_DEFAULT",
        "mode": "WEBHOOK_MODE_SPECIFIC",
    }
    body = {**webhook, "triggers": [{"triggerType": "TRIGGER_TYPE_CUSTOM", "condition": {}}]}
    replies = [
        site.editor.post("/api/v1/webhooks", json={**body, "workspaceId": ident})
        for ident in (site.foreign.workspace, 999_999)
    ]
    told = [reply.json()["error"]["error"].replace(str(site.foreign.workspace), "N") for reply in replies]
    assert [reply.status_code for reply in replies] == [404, 404], told
    assert told[0] == told[1].replace("999999", "N")


def test_nobody_hears_what_a_workspace_allows_without_a_role_in_it(site: Site) -> None:
    """What is refused there, and that it is archived, is not for strangers."""
    admin, project = site.persons.clients["admin"], site.foreign.project
    policies = f"/api/v1/config-policies/workspaces/{site.foreign.workspace}"
    for kind in ("EXPERIMENT", "NTSC"):
        limits = {"configPolicies": "constraints: {resources: {max_slots: 0}}"}
        reply = admin.put(f"{policies}/{kind}", json={**limits, "workspaceId": site.foreign.workspace})
        assert reply.status_code == 200, reply.text
    slots = "resources: {slots: 1, resource_pool: gpus}\nentrypoint: ['true']"
    experiment = json.dumps({**CONFIG, "resources": {"resource_pool": "moon"}})
    named = json.dumps({**CONFIG, "workspace": "foreign", "project": "p"})
    launches: list[tuple[str, dict[str, Any]]] = [
        ("commands", {"config": {"resources": {"slots": 1}}, "workspaceId": site.foreign.workspace}),
        ("notebooks", {"config": {"resources": {"resource_pool": "moon"}}, "workspaceId": site.foreign.workspace}),
        ("generic-tasks", {"config": slots, "projectId": project, "contextDirectory": []}),
        ("experiments", {"config": experiment, "projectId": project, "validateOnly": True}),
        ("experiments", {"config": named, "validateOnly": True}),
        ("experiments", {"config": experiment, "projectId": project, "unmanaged": True}),
    ]

    def answers() -> list[tuple[str, int]]:
        return [(path, site.editor.post(f"/api/v1/{path}", json=body).status_code) for path, body in launches]

    hidden = [(path, 404) for path, _ in launches]
    try:
        assert answers() == hidden
        assert site.viewer.post("/api/v1/commands", json=launches[0][1]).status_code == 403
        assert admin.post(f"/api/v1/workspaces/{site.foreign.workspace}/archive").status_code == 200
        assert answers() == hidden
        missing = site.editor.post("/api/v1/experiments", json={"config": named.replace("foreign", "nowhere")})
        told = site.editor.post("/api/v1/experiments", json={"config": named})
        assert told.text.replace("foreign", "nowhere") == missing.text
    finally:
        admin.post(f"/api/v1/workspaces/{site.foreign.workspace}/unarchive")
        for kind in ("EXPERIMENT", "NTSC"):
            admin.delete(f"{policies}/{kind}")
