"""Templates: what is kept, who may have it, and what experiments make of it (docs/reference/tasks-and-cli.md 7)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
import pytest_asyncio
import yaml

from tests.integration.api.experiments.conftest import Api
from tests.integration.api.experiments.det import Det, start_det

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONFIG = {"description": "shared", "environment": {"environment_variables": ["A=1"]}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def det(api: Api, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Det]:
    async with start_det(api.url, tmp_path_factory.mktemp("home")) as client:
        yield client


def path_of(name: str) -> str:
    return f"/api/v1/templates/{quote(name)}"


def named(stem: str = "t") -> str:
    """A name that no other test uses."""
    return f"{stem}-{uuid4().hex[:8]}"


async def made(api: Api, config: dict[str, Any] | None = None, **fields: Any) -> str:
    """The name of a new template."""
    name = named()
    await api.ok("POST", path_of(name), json={"name": name, "config": config or {}, **fields})
    return name


async def workspace(api: Api) -> int:
    return int((await api.ok("POST", "/api/v1/workspaces", json={"name": named("w")}))["workspace"]["id"])


async def kept(api: Api, name: str) -> dict[str, Any]:
    template: dict[str, Any] = (await api.ok("GET", path_of(name)))["template"]
    return template


async def test_life_of_a_template(api: Api) -> None:
    name, new = named(), named()
    made = await api.ok("POST", path_of(name), json={"name": "not this one", "config": CONFIG, "workspaceId": 0})
    assert made == {"template": {"name": name, "config": CONFIG, "workspaceId": 1}}
    assert await api.ok("GET", path_of(name)) == made

    changed = await api.ok("PATCH", path_of(name), json={"max_restarts": 3})
    assert changed["template"] == {"name": name, "config": {"max_restarts": 3}, "workspaceId": 1}, "replaced whole"

    renamed = await api.ok("PATCH", "/api/v1/template/rename", json={"oldName": name, "newName": new})
    assert renamed["template"] == {"name": new, "config": {"max_restarts": 3}, "workspaceId": 1}
    assert await api.refused(404, "GET", path_of(name)) == f"template '{name}' not found"

    assert await api.ok("DELETE", path_of(new)) == {}
    assert await api.refused(404, "GET", path_of(new)) == f"template '{new}' not found"


async def test_put_makes_it_or_changes_what_is_given(api: Api) -> None:
    name, place = named(), await workspace(api)
    first = await api.ok("PUT", path_of(name), json={})
    assert first["template"] == {"name": name, "config": {}, "workspaceId": 1}
    await api.ok("PUT", path_of(name), json={"config": CONFIG})
    await api.ok("PUT", path_of(name), json={"workspaceId": place, "config": None})
    assert await kept(api, name) == {"name": name, "config": CONFIG, "workspaceId": place}
    await api.ok("PUT", path_of(name), json={"config": {}, "workspaceId": 0})
    assert await kept(api, name) == {"name": name, "config": {}, "workspaceId": place}


async def test_requests_that_cannot_be_right(api: Api) -> None:
    name, other = await made(api), await made(api)
    missing = named("missing")
    rename = "/api/v1/template/rename"
    nowhere = {"workspaceId": 999_999}
    cases: list[tuple[int, str, str, Any, str]] = [
        (409, "POST", path_of(name), {}, f"template '{name}' already exists"),
        (404, "POST", path_of(missing), nowhere, "workspace '999999' not found"),
        (404, "PUT", path_of(missing), nowhere, "workspace '999999' not found"),
        (400, "POST", "/api/v1/templates/", {}, "name is required"),
        (400, "POST", "/api/v1/templates/%20", {}, "name is required"),
        (400, "POST", path_of("x" * 257), {}, "name: must not be longer than 256 characters"),
        (400, "POST", path_of(missing), {"config": [1]}, "config: expected `object`, got `array`"),
        (400, "PATCH", path_of(name), [1], "body: expected `object`, got `array`"),
        (404, "PATCH", path_of(missing), {}, f"template '{missing}' not found"),
        (404, "DELETE", path_of(missing), None, f"template '{missing}' not found"),
        (404, "PATCH", rename, {"oldName": missing, "newName": other}, f"template '{missing}' not found"),
        (409, "PATCH", rename, {"oldName": name, "newName": other}, f"template '{other}' already exists"),
        (400, "PATCH", rename, {"oldName": name}, "name is required"),
    ]
    for status, method, path, body, message in cases:
        assert await api.refused(status, method, path, json=body) == message, (method, path)
    await api.ok("PATCH", rename, json={"oldName": name, "newName": name})
    assert (await kept(api, name))["config"] == {}


async def test_a_template_has_a_size(api: Api) -> None:
    large = {"config": {"data": "x" * 2**20}}
    for method in ("POST", "PUT", "PATCH"):
        body = large["config"] if method == "PATCH" else large
        assert "larger than" in await api.refused(400, method, path_of(named("large")), json=body)


@pytest.mark.parametrize("name", ["a/b/c", "50% of it?", "größer #1", "a b.c", "a\nb", "%2F"])
async def test_names_may_be_nearly_anything(api: Api, name: str) -> None:
    name += uuid4().hex[:8]
    await api.ok("POST", path_of(name), json={"config": CONFIG})
    assert (await kept(api, name))["name"] == name
    experiment_id = await api.create(template=name)
    assert (await api.rows.experiment(experiment_id)).config["environment"]["environment_variables"]["cpu"] == ["A=1"]
    await api.ok("DELETE", path_of(name))


async def test_list_by_name_and_workspace_in_pages(api: Api) -> None:
    stem, place = named("li%st"), await workspace(api)
    for number in (2, 0, 1):
        body = {"config": {"max_restarts": number}, "workspaceId": place if number else 0}
        await api.ok("POST", path_of(f"{stem}-{number}"), json=body)

    async def names(**query: Any) -> list[str]:
        found = await api.ok("GET", "/api/v1/templates", params={"name": stem.upper(), **query})
        return [template["name"].removeprefix(f"{stem}-") for template in found["templates"]]

    assert await names() == ["0", "1", "2"]
    assert await names(orderBy="ORDER_BY_DESC", sortBy="SORT_BY_NAME") == ["2", "1", "0"]
    assert await names(workspaceIds=[place]) == ["1", "2"]
    assert await names(workspaceIds=[1, place], offset=1, limit=1) == ["1"]
    assert await names(offset=-1) == ["2"]
    assert await names(limit=-2) == []
    assert await names(name=stem.replace("%", "x")) == [], "a per cent sign is no wildcard"
    page = await api.ok("GET", "/api/v1/templates", params={"name": stem, "limit": 2})
    assert page["pagination"] == {"offset": 0, "limit": 2, "startIndex": 0, "endIndex": 2, "total": 3}
    assert page["templates"][0] == {"name": f"{stem}-0", "config": {"max_restarts": 0}, "workspaceId": 1}


async def test_templates_go_with_their_workspace(api: Api) -> None:
    place = await workspace(api)
    name = await made(api, CONFIG, workspaceId=place)
    assert (await api.ok("DELETE", f"/api/v1/workspaces/{place}"))["completed"] is True
    await api.refused(404, "GET", path_of(name))


async def test_a_workspace_that_is_going_takes_no_more(api: Api) -> None:
    place = await workspace(api)
    project = await api.ok("POST", f"/api/v1/workspaces/{place}/projects", json={"name": named("p")})
    assert project["project"]["workspaceId"] == place
    assert (await api.ok("DELETE", f"/api/v1/workspaces/{place}"))["completed"] is False
    message = await api.refused(400, "POST", path_of(named()), json={"workspaceId": place})
    assert message == f"workspace ({place}) is being deleted and cannot add new templates"


async def test_without_roles_everybody_may_change_what_others_made(api: Api) -> None:
    name = await made(api, CONFIG)
    for method, body in (("GET", None), ("PATCH", {}), ("PUT", {}), ("DELETE", None)):
        answer = await api.admin.request(method, path_of(name), json=body)
        assert answer.status_code == 200, answer.text
    for method, path in (("GET", "/api/v1/templates"), ("DELETE", path_of(name))):
        nobody = await api.client.request(method, path, headers={"Authorization": "Bearer none"})
        assert nobody.status_code == 401


TRAIN = {"entrypoint": "run", "searcher": {"name": "single", "metric": "loss"}}


async def test_the_users_own_words_lie_over_the_templates(api: Api) -> None:
    place = await workspace(api)
    project = named("p")
    await api.ok("POST", f"/api/v1/workspaces/{place}/projects", json={"name": project})
    about = (await api.ok("GET", f"/api/v1/workspaces/{place}"))["workspace"]
    name = await made(
        api,
        {
            "name": "template's",
            "description": "template's",
            "workspace": about["name"],
            "project": project,
            "labels": ["t"],
            "entrypoint": "template",
            "environment": {"environment_variables": ["A=template", "B=template"], "image": "template"},
            "bind_mounts": [{"host_path": "/t", "container_path": "/x"}, {"host_path": "/t", "container_path": "/y"}],
            "hyperparameters": {"a": 1, "b": 1},
            "resources": {"slots_per_trial": 2, "resource_pool": "other"},
            "searcher": {"name": "random", "metric": "x", "max_trials": 7, "smaller_is_better": False},
            "checkpoint_storage": {"type": "s3", "bucket": "template"},
        },
    )
    user = {
        "name": "user's",
        "entrypoint": "run",
        "labels": ["u"],
        "environment": {"environment_variables": ["A=user"]},
        "bind_mounts": [{"host_path": "/u", "container_path": "/x"}],
        "hyperparameters": {"b": 2},
        "searcher": {"name": "random", "max_trials": 3},
        "checkpoint_storage": {"save_trial_best": 5},
    }
    text = json.dumps(user)
    created = await api.ok("POST", "/api/v1/experiments", json={"config": text, "template": name})
    config, experiment = created["config"], created["experiment"]
    assert experiment["projectName"] == project
    assert experiment["originalConfig"] == text, "what was submitted, without the template"
    assert (config["name"], config["description"], config["entrypoint"]) == ("user's", "template's", "run")
    assert sorted(config["labels"]) == ["t", "u"]
    assert config["environment"]["environment_variables"]["cuda"] == ["A=template", "B=template", "A=user"]
    assert config["environment"]["image"]["cuda"] == "template"
    assert [(mount["host_path"], mount["container_path"]) for mount in config["bind_mounts"]] == [
        ("/u", "/x"),
        ("/t", "/y"),
    ]
    assert {key: value["val"] for key, value in config["hyperparameters"].items()} == {"a": 1, "b": 2}
    assert (config["resources"]["slots_per_trial"], config["resources"]["resource_pool"]) == (2, "other")
    assert (config["searcher"]["max_trials"], config["searcher"]["metric"]) == (3, "x")
    assert config["searcher"]["smaller_is_better"] is False
    assert (config["checkpoint_storage"]["bucket"], config["checkpoint_storage"]["save_trial_best"]) == ("template", 5)

    # What is stored is the experiment's own: the template may change, and go.
    await api.ok("PATCH", path_of(name), json={"description": "changed"})
    await api.ok("DELETE", path_of(name))
    assert (await api.ok("GET", f"/api/v1/experiments/{experiment['id']}"))["config"] == config


async def test_a_template_may_hold_all_that_is_needed(api: Api) -> None:
    name = await made(api, TRAIN)
    body = {"config": "{}", "template": name, "validateOnly": True}
    await api.ok("POST", "/api/v1/experiments", json=body)
    assert (await api.rows.experiment(await api.create("{}", template=name))).config["entrypoint"] == "run"


async def test_mistakes_in_a_template_come_to_light_when_it_is_used(api: Api) -> None:
    invalid = "invalid experiment configuration: version 0 experiment config is invalid: config is invalid: "
    mistakes: list[tuple[dict[str, Any], str]] = [
        ({"speed": 1}, '<config>: additionalProperties "speed" not allowed'),
        ({"resources": {"slots": 1, "spots": 1}}, '<config>.resources: additionalProperties "spots" not allowed'),
        ({"max_restarts": "no"}, "<config>.max_restarts: expected integer, but got string"),
    ]
    for config, problem in mistakes:
        name = await made(api, config)
        for validate_only in (False, True):
            body = {"config": json.dumps(TRAIN), "template": name, "validateOnly": validate_only}
            message = await api.refused(400, "POST", "/api/v1/experiments", json=body)
            assert message == f"template '{name}': {invalid}{problem}"
    body = {"config": "speed: 1", "template": "missing"}
    assert "speed" in await api.refused(400, "POST", "/api/v1/experiments", json=body), "the user's mistakes come first"
    body = {"config": json.dumps(TRAIN), "template": "missing"}
    assert await api.refused(404, "POST", "/api/v1/experiments", json=body) == "template 'missing' not found"


async def test_slots_of_a_template_are_for_other_tasks_and_those_of_the_user_are_refused(api: Api) -> None:
    name = await made(api, {"resources": {"slots": 3, "slots_per_trial": 2}})
    experiment_id = await api.create(json.dumps(TRAIN), template=name)
    resources = (await api.rows.experiment(experiment_id)).config["resources"]
    assert resources["slots_per_trial"] == 2
    assert "slots" not in resources
    body = {"config": json.dumps({**TRAIN, "resources": {"slots": 3}}), "template": name}
    message = await api.refused(400, "POST", "/api/v1/experiments", json=body)
    assert '<config>.resources: additionalProperties "slots" not allowed' in message


async def test_commands_of_the_client(api: Api, det: Det, tmp_path: Path) -> None:
    name, other = named("det"), named("det")
    about = (await api.ok("GET", f"/api/v1/workspaces/{await workspace(api)}"))["workspace"]
    file, changed, empty = (tmp_path / each for each in ("template.yaml", "changed.yaml", "empty.yaml"))
    file.write_text(yaml.safe_dump(CONFIG))
    changed.write_text("environment: {environment_variables: {cpu: [SHOULDBE=SET]}}\nmax_restarts: 1\n")
    empty.write_text("")

    assert f"Set template {name}" in (await det("template", "set", name, str(file))).out
    assert yaml.safe_load((await det("template", "describe", name)).out) == CONFIG
    assert f"Set template {name}" in (await det("tpl", "set", name, str(changed))).out
    assert "SHOULDBE=SET" in (await det("template", "describe", name)).out

    created = await det("template", "create", other, str(file), "--workspace-name", about["name"])
    assert f"Created template {other}" in created.out
    again = await det("template", "create", other, str(file), code=1)
    assert f"template '{other}' already exists" in again.err
    updated = await det("template", "set-value", "config", other, str(changed))
    assert f"Updated template {other}" in updated.out

    listed = (await det("template", "list")).out
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in listed.splitlines()]
    assert [other, about["name"]] in rows
    assert "SHOULDBE=SET" in (await det("template", "list", "--details")).out

    model = tmp_path / "model"
    model.mkdir()
    (model / "train.yaml").write_text(json.dumps(TRAIN))
    arguments = ("--paused", "--template", name, "--config", "description=mine", str(model / "train.yaml"), str(model))
    number = (await det("e", "create", *arguments)).out.split()[-1]
    config = yaml.safe_load((await det("e", "config", number)).out)
    assert config["environment"]["environment_variables"]["cpu"] == ["SHOULDBE=SET"]
    assert (config["max_restarts"], config["description"]) == (1, "mine")

    await det("template", "set-value", "config", other, str(empty))
    assert (await kept(api, other))["config"] == {}
    for each in (name, other):
        assert f"Removed template {each}" in (await det("template", "remove", each)).out
    for command in (("describe", name), ("remove", name), ("set-value", "config", name, str(file))):
        failed = await det("template", *command, code=1)
        assert f"template '{name}' not found" in failed.err, command
