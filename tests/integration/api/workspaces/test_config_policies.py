"""Config policies, as the unmodified client sets them, and what they do to everything that is launched or changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from sqlalchemy import update

from libs.db.engine import Connection
from libs.db.tables.experiments import experiments
from tests.harness.det import Det
from tests.integration.api.world import World

GLOBAL = "/api/v1/config-policies/global"
SINGLE = {"name": "single", "metric": "loss", "max_length": {"batches": 1}}


@pytest.fixture(scope="module")
def team(admin: httpx.Client) -> tuple[int, int]:
    """A workspace, and a project in it."""
    workspace = admin.post("/api/v1/workspaces", json={"name": "team"}).json()["workspace"]["id"]
    project = admin.post(f"/api/v1/workspaces/{workspace}/projects", json={"name": "work"}).json()["project"]["id"]
    return workspace, project


@pytest.fixture(autouse=True)
def _no_policies_are_left(admin: httpx.Client, team: tuple[int, int]) -> Iterator[None]:
    yield
    for scope in (GLOBAL, of(team)):
        for workload in ("EXPERIMENT", "NTSC"):
            assert admin.delete(f"{scope}/{workload}").json() == {}


def of(team: tuple[int, int]) -> str:
    return f"/api/v1/config-policies/workspaces/{team[0]}"


def put(client: httpx.Client, scope: str, policies: Any, workload: str = "EXPERIMENT") -> httpx.Response:
    text = policies if isinstance(policies, str) else json.dumps(policies)
    return client.put(f"{scope}/{workload}", json={"workloadType": workload, "configPolicies": text})


def create(client: httpx.Client, team: tuple[int, int], **config: Any) -> httpx.Response:
    whole = {"name": "limited", "entrypoint": "true", "searcher": SINGLE, **config}
    body = {"config": json.dumps(whole), "projectId": team[1], "activate": False, "parentId": config.pop("parent", 0)}
    return client.post("/api/v1/experiments", json=body)


def error(reply: httpx.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["error"]


def test_policies_are_set_described_and_deleted(det: Det, tmp_path: Path, team: tuple[int, int]) -> None:
    policies = {"invariant_config": {"labels": ["ours"]}, "constraints": {"resources": {"max_slots": 4}}}
    file = tmp_path / "policies.yaml"
    file.write_text(yaml.safe_dump(policies))
    for where in ((), ("-w", "team")):
        assert det("config-policies", "describe", "experiment", *where, "--json").json() == {}
        assert "ours" in det("config-policies", "set", "experiment", str(file), *where).out
        assert det("config-policies", "describe", "experiment", *where, "--json").json() == policies
        assert yaml.safe_load(det("config-policies", "describe", "experiment", *where).out) == policies
        assert det("config-policies", "describe", "tasks", *where, "--json").json() == {}
        assert "Successfully deleted" in det("config-policies", "delete", "experiment", *where).out
        assert det("config-policies", "describe", "experiment", *where, "--json").json() == {}
    file.write_text("constraints: {priority_limit: 10}")
    det("config-policies", "set", "tasks", str(file))
    assert det("cp", "describe", "tasks", "--json").json() == {"constraints": {"priority_limit": 10}}
    assert "not found" in det.fails("config-policies", "describe", "tasks", "-w", "nowhere").err.lower()


@pytest.mark.parametrize("where", [(), ("-w", "team")], ids=["everywhere", "in a workspace"])
@pytest.mark.parametrize("write", [yaml.safe_dump, json.dumps], ids=["yaml", "json"])
def test_a_description_is_the_text_that_was_set(
    det: Det, tmp_path: Path, where: tuple[str, ...], write: Callable[[Any], str]
) -> None:
    limits = {"priority_limit": 10, "resources": {"max_slots": 4}}
    fixed = {"debug": True, "max_restarts": 3, "resources": {"priority": 20}}
    for workload, policies in (("tasks", {"constraints": limits}), ("experiment", {"invariant_config": fixed})):
        file = tmp_path / f"{workload}.txt"
        file.write_text(write(policies))
        told = det("config-policies", "set", workload, str(file), *where).out
        assert told.split(":\n", 1)[1].strip() == yaml.safe_dump(policies).strip()
        described = det("config-policies", "describe", workload, *where).out
        assert described.strip() == yaml.safe_dump(policies).strip(), "in the order of the keys, numbers as they were"


def test_what_is_wrong_is_refused_and_changes_nothing(admin: httpx.Client, team: tuple[int, int]) -> None:
    kept = {"constraints": {"resources": {"max_slots": 2}}}
    assert put(admin, GLOBAL, kept).json() == {"configPolicies": kept}
    fixed = {"invariant_config": {"resources": {"slots_per_trial": 3}}}
    refused = [
        (put(admin, GLOBAL, ""), "no specified config policies"),
        (put(admin, GLOBAL, "- a list"), "invalid experiment config policy"),
        (put(admin, GLOBAL, {"constraint": {}}), "invalid experiment config policy"),
        (put(admin, GLOBAL, {"invariant_config": {"sloots": 1}}), "invalid experiment config policy"),
        (put(admin, GLOBAL, {**fixed, **kept}), "slots_per_trial (3) is greater than"),
        (put(admin, of(team), fixed), "slots_per_trial (3) is greater than"),
        (put(admin, GLOBAL, kept, "SLEEP"), "invalid workload type: SLEEP"),
        (put(admin, GLOBAL, {"invariant_config": {}}, "NTSC"), "not supported: invariant config policies for tasks"),
        (put(admin, GLOBAL, {"workspace": 1}, "NTSC"), "invalid ntsc config policy"),
        (admin.get(f"{GLOBAL}/experiment"), "invalid workload type: experiment"),
    ]
    for reply, says in refused:
        assert (reply.status_code, says in error(reply)[1]) == (400, True), reply.text
    assert admin.get(f"{GLOBAL}/EXPERIMENT").json() == {"configPolicies": kept}
    missing = "/api/v1/config-policies/workspaces/987654"
    for reply in (put(admin, missing, kept), admin.get(f"{missing}/NTSC"), admin.delete(f"{missing}/NTSC")):
        assert error(reply) == (404, "workspace '987654' not found")


def test_who_may_set_them(admin: httpx.Client, user: httpx.Client, team: tuple[int, int]) -> None:
    limits = {"constraints": {"priority_limit": 50}}
    assert error(put(user, GLOBAL, limits)) == (403, "only admin privileged users can modify global config policies")
    assert put(user, of(team), limits).status_code == 403
    assert user.delete(f"{of(team)}/NTSC").status_code == 403
    own = user.post("/api/v1/workspaces", json={"name": "my own"}).json()["workspace"]["id"]
    assert put(user, of((own, 0)), limits).status_code == 200
    assert user.get(f"{of((own, 0))}/EXPERIMENT").json() == {"configPolicies": limits}
    assert user.get(f"{GLOBAL}/EXPERIMENT").json() == {"configPolicies": {}}
    stranger = {"Authorization": "Bearer x"}
    assert user.get(f"{GLOBAL}/EXPERIMENT", headers=stranger).status_code == 401


def test_invariants_win_over_what_users_write(admin: httpx.Client, user: httpx.Client, team: tuple[int, int]) -> None:
    ours = {"labels": ["team"], "max_restarts": 1, "resources": {"resource_pool": "cpus"}}
    assert put(admin, of(team), {"invariant_config": ours}).status_code == 200
    assert put(admin, GLOBAL, {"invariant_config": {"max_restarts": 2, "labels": ["all"]}}).status_code == 200
    made = create(user, team, labels=["mine"], max_restarts=9, resources={"resource_pool": "gpus"}).json()
    config = made["experiment"]["config"]
    assert sorted(config["labels"]) == ["all", "mine", "team"]
    assert (config["max_restarts"], config["resources"]["resource_pool"]) == (2, "cpus")
    elsewhere = create(user, (1, 1), resources={"resource_pool": "gpus"}).json()["experiment"]["config"]
    assert (elsewhere["labels"], elsewhere["resources"]["resource_pool"]) == (["all"], "gpus")


def test_constraints_limit_what_is_created(admin: httpx.Client, user: httpx.Client, team: tuple[int, int]) -> None:
    put(admin, of(team), {"constraints": {"resources": {"max_slots": 2}, "priority_limit": 40}})
    slots = "exceeds limit set by admin [2]: submitted workload failed a resource constraint"
    for resources, says in (
        ({"slots_per_trial": 3}, f"requested resources.slots [3] {slots}"),
        ({"max_slots": 4}, f"requested resources.max_slots [4] {slots}"),
        ({"priority": 30}, "requested priority [30] exceeds limit set by admin [40]"),
    ):
        status, text = error(create(user, team, resources=resources))
        assert (status, says in text) == (400, True), text
    assert create(user, (1, 1), resources={"slots_per_trial": 3}).status_code == 200, "of that workspace only"
    parent = create(user, (1, 1)).json()["experiment"]["id"]
    assert create(user, team, parent=parent, resources={"slots_per_trial": 3}).status_code == 400, "a fork"
    put(admin, GLOBAL, {"constraints": {"resources": {"max_slots": 8}}})
    assert create(user, team, resources={"slots_per_trial": 8}).status_code == 200, "the global limit counts"
    assert create(user, team, resources={"priority": 30}).status_code == 400, "field by field"


def test_constraints_limit_other_tasks(
    admin: httpx.Client, det: Det, user: httpx.Client, team: tuple[int, int]
) -> None:
    put(admin, of(team), {"constraints": {"resources": {"max_slots": 1}, "priority_limit": 40}}, "NTSC")
    says = "failed to prepare launch params: failed constraint check: requested resources.slots [2] exceeds limit"
    two = ("--config", "resources.slots=2", "--detach")
    for command in (("cmd", "run", *two, "true"), ("notebook", "start", *two), ("shell", "start", *two)):
        assert says in det.fails(*command[:2], "-w", "team", *command[2:]).err
    priority = ("--config", "resources.priority=39")
    assert "requested priority [39] exceeds limit" in det.fails("cmd", "run", *priority, "-w", "team", "true").err
    config = {"entrypoint": ["true"], "resources": {"slots": 2}}
    task = {"config": yaml.safe_dump(config), "projectId": team[1]}
    assert error(user.post("/api/v1/generic-tasks", json=task))[0] == 400
    command = {"config": {"entrypoint": ["true"], "resources": {"slots": 1}}, "workspaceId": team[0]}
    launched = user.post("/api/v1/commands", json=command)
    assert launched.status_code == 200, launched.text
    ident = launched.json()["command"]["id"]
    path = f"/api/v1/commands/{ident}/set_priority"
    assert "priority_limit" in error(user.post(path, json={"priority": 39}))[1]
    assert user.post(path, json={"priority": 60}).status_code == 200


def test_changes_keep_to_the_policies(admin: httpx.Client, det: Det, user: httpx.Client, team: tuple[int, int]) -> None:
    made = create(user, team, resources={"priority": 45, "max_slots": 8}).json()["experiment"]
    experiment, job = str(made["id"]), made["jobId"]
    put(admin, of(team), {"constraints": {"resources": {"max_slots": 4}, "priority_limit": 40}})
    det("experiment", "set", "name", experiment, "still mine")
    assert "priority_limit" in det.fails("experiment", "set", "priority", experiment, "39").err
    assert "priority_limit" in det.fails("job", "update", job, "--priority", "39").err
    assert "max slots constraint of 4" in det.fails("experiment", "set", "max-slots", experiment, "5").err
    det("experiment", "set", "max-slots", experiment, "4")
    det("job", "update", job, "--priority", "41")
    fixed = {"priority": 50, "weight": 2, "resource_pool": "gpus"}
    put(admin, GLOBAL, {"invariant_config": {"resources": fixed}})
    fails = "priority set by invariant config: priority cannot be modified"
    assert fails in det.fails("job", "update", job, "--priority", "41").err
    assert fails in det.fails("experiment", "set", "priority", experiment, "60").err
    assert "enforced as an invariant" in det.fails("experiment", "set", "weight", experiment, "3").err
    assert "already set in an invariant" in det.fails("job", "update", job, "--resource-pool", "cpus").err
    det("job", "update", job, "--priority", "50")


def test_an_experiment_that_goes_on_keeps_to_them(
    admin: httpx.Client, user: httpx.Client, world: World, team: tuple[int, int]
) -> None:
    made = create(user, team, resources={"slots_per_trial": 3}).json()["experiment"]["id"]

    async def end(connection: Connection) -> None:
        await connection.execute(update(experiments).where(experiments.c.id == made).values(state="CANCELED"))

    world.in_database(end)
    put(admin, of(team), {"constraints": {"resources": {"max_slots": 2}}})
    refused = user.post("/api/v1/experiments/continue", json={"id": made})
    assert "requested resources.slots [3] exceeds limit" in error(refused)[1]
    smaller = yaml.safe_dump({"resources": {"slots_per_trial": 2}})
    put(admin, GLOBAL, {"invariant_config": {"max_restarts": 3}})
    again = user.post("/api/v1/experiments/continue", json={"id": made, "overrideConfig": smaller})
    assert again.status_code == 200, again.text
    config = admin.get(f"/api/v1/experiments/{made}").json()["config"]
    assert (config["resources"]["slots_per_trial"], config["max_restarts"]) == (2, 3)
