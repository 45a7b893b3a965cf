"""Launching notebooks, TensorBoards, shells and commands, as far as the api does it: what it refuses, what it stores,
and what it answers (docs/reference/tasks-and-cli.md 2.1 to 2.6 and 3)."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import yaml
from sqlalchemy import func, select, update

from libs.db.engine import Connection
from libs.db.tables.interactive import interactive_tasks
from libs.db.tables.tasks import allocations, jobs, tasks
from libs.db.tables.workspaces import workspaces
from libs.tasks.stored import StoredTask, from_document
from tests.builders import insert_experiment, insert_trial, insert_workspace
from tests.harness.det import Det
from tests.harness.waiting import wait_until
from tests.integration.api.world import World, two_nodes

KINDS = {"NOTEBOOK": "notebook", "TENSORBOARD": "tensorboard", "SHELL": "shell", "COMMAND": "command"}
TITLES = {"NOTEBOOK": "JupyterLab", "TENSORBOARD": "TensorBoard", "SHELL": "Shell", "COMMAND": "Command"}
UNPREPARED = "failed to prepare launch params: "
Object = dict[str, Any]


def launch(client: httpx.Client, noun: str, config: Object | None = None, **body: Any) -> Object:
    reply = client.post(f"/api/v1/{noun}s", json={"config": config, "templateName": None, "workspaceId": None, **body})
    assert reply.status_code == 200, reply.text
    answer: Object = reply.json()
    return answer


def refused(client: httpx.Client, noun: str, config: Object | None = None, *, status: int = 400, **body: Any) -> str:
    reply = client.post(f"/api/v1/{noun}s", json={"config": config, **body})
    assert reply.status_code == status, reply.text
    text: str = reply.json()["error"]["error"]
    return text


def row_of(world: World, task_id: str) -> Object:
    async def work(connection: Connection) -> Object:
        query = (
            select(
                tasks,
                interactive_tasks,
                allocations,
                jobs.c.job_type,
                jobs.c.weight,
                jobs.c.priority.label("queued_as"),
            )
            .join(interactive_tasks, interactive_tasks.c.task_id == tasks.c.task_id)
            .join(allocations, allocations.c.task_id == tasks.c.task_id)
            .join(jobs, jobs.c.job_id == tasks.c.job_id)
            .where(tasks.c.task_id == task_id)
        )
        return dict((await connection.execute(query)).mappings().one())

    found: Object = world.in_database(work)
    return found


def stored(world: World, task_id: str) -> StoredTask:
    return from_document(row_of(world, task_id)["spec"])


def count(world: World, table: Any) -> int:
    found: int = world.in_database(lambda tx: tx.scalar(select(func.count()).select_from(table)))
    return found


@pytest.fixture
def experiment(world: World) -> int:
    return new_experiment(world)


def new_experiment(world: World, **config: Any) -> int:
    image = {slot_type: f"of-experiment-{slot_type}" for slot_type in ("cpu", "cuda", "rocm")}
    storage = {"type": "shared_fs", "host_path": "/storage", "storage_path": None, "propagation": "rprivate"}
    whole = {"checkpoint_storage": storage, "environment": {"image": image}, "bind_mounts": [], **config}
    found: int = world.in_database(lambda tx: insert_experiment(tx, config=whole))
    return found


@pytest.fixture
def of_something(experiment: int) -> Object:
    """What a request for a TensorBoard cannot do without; others pass it over."""
    return {"experimentIds": [experiment]}


@pytest.mark.parametrize("task_type", KINDS)
def test_a_launch_is_answered_as_a_get_is_and_waits_in_its_pool(
    user: httpx.Client, world: World, of_something: Object, task_type: str
) -> None:
    noun = KINDS[task_type]
    answer = launch(user, noun, {}, **of_something)
    task, config = answer[noun], answer["config"]
    assert user.get(f"/api/v1/{noun}s/{task['id']}").json() == {noun: task, "config": config}
    pool = "cpus" if task_type == "TENSORBOARD" else "gpus"
    assert (task["state"], task["resourcePool"], task["workspaceId"]) == ("STATE_QUEUED", pool, 1)
    assert task["description"].startswith(f"{TITLES[task_type]} (")
    assert config["description"] == task["description"]
    assert config["resources"] == {
        "slots": 0 if task_type == "TENSORBOARD" else 1,
        "weight": 1,
        "resource_pool": pool,
        "priority": 42,
        "is_single_node": None,
        "devices": None,
    }
    assert answer["warnings"] == []
    row = row_of(world, task["id"])
    assert (row["allocation_id"], row["state"], row["name"]) == (f"{task['id']}.1", "PENDING", task["description"])
    assert (row["task_type"], row["job_type"], row["queued_as"], row["weight"]) == (task_type, task_type, 42, 1)
    assert (row["preemptible"], row["context_tgz"], row["owner_id"]) == (False, None, 2)
    assert row["idle_timeout_s"] == (300 if task_type == "TENSORBOARD" else None)


def test_shells_have_keys_of_their_own(user: httpx.Client, world: World) -> None:
    first, second = (launch(user, "shell")["shell"] for _ in range(2))
    assert first["privateKey"].startswith("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    assert first["publicKey"].startswith("ssh-ed25519 ")
    assert first["privateKey"] != second["privateKey"]
    assert first["agentUserGroup"]["user"] == "root"
    files = {file.path: file.content.decode() for file in stored(world, first["id"]).files}
    assert files == {
        "ssh/authorized_keys_unmodified": first["publicKey"],
        "ssh/id_rsa": first["privateKey"],
        "ssh/id_rsa.pub": first["publicKey"],
    }


def test_notebooks_have_a_token_of_their_own(user: httpx.Client, world: World) -> None:
    notebook = launch(user, "notebook", {"idle_timeout": "90s"})["notebook"]
    row = row_of(world, notebook["id"])
    assert row["idle_timeout_s"] == 90
    spec = from_document(row["spec"])
    variables = dict(spec.extra_environment)
    assert notebook["serviceAddress"].startswith(f"/proxy/{notebook['id']}/?token=2.{notebook['id']}.")
    assert variables["DET_NOTEBOOK_TOKEN"], "the server in it has one of its own"
    assert variables["DET_NOTEBOOK_TOKEN"] not in notebook["serviceAddress"]
    assert json.loads(variables["NOTEBOOK_CONFIG"])["idle_timeout"] == "1m30s"
    [port] = spec.proxy_ports
    assert (port.service_id, str(port.port)) == (notebook["id"], variables["NOTEBOOK_PORT"])


def test_services_listen_on_ports_of_their_own(user: httpx.Client, world: World) -> None:
    """Also those that are launched at once."""
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: launch(user, "shell")["shell"]["id"], range(40)))
    ports = [stored(world, ident).proxy_ports[0].port for ident in ids]
    assert len(set(ports)) == len(ports)


def test_a_preview_launches_nothing(user: httpx.Client, world: World) -> None:
    before = count(world, tasks)
    answer = launch(user, "notebook", {"resources": {"slots": 0}}, preview=True)
    assert answer["config"]["resources"]["resource_pool"] == "cpus"
    assert answer["notebook"] == {
        "id": "",
        "description": "",
        "state": "STATE_UNSPECIFIED",
        "startTime": None,
        "container": None,
        "displayName": "",
        "userId": 0,
        "username": "",
        "serviceAddress": "",
        "resourcePool": "",
        "exitStatus": "",
        "jobId": "",
        "workspaceId": 0,
    }
    assert count(world, tasks) == before


def test_a_template_lies_below_what_its_user_submits(user: httpx.Client, world: World) -> None:
    config = {
        "hyperparameters": {},
        "environment": {"environment_variables": ["SHOULDBE=SET"]},
        "resources": {"slots": 0},
        "entrypoint": ["of", "template"],
    }
    user.post("/api/v1/templates/below", json={"name": "below", "config": config}).raise_for_status()
    answer = launch(user, "command", {"entrypoint": ["mine"]}, templateName="below")
    assert answer["config"]["environment"]["environment_variables"]["cpu"] == ["SHOULDBE=SET"]
    task = stored(world, answer["command"]["id"])
    assert (task.argv, task.environment.variables) == (("mine",), ("SHOULDBE=SET",))
    assert answer["command"]["resourcePool"] == "cpus", "slots of a template count"
    missing = refused(user, "command", {}, status=404, templateName="nobody's")
    assert missing == f"{UNPREPARED}template 'nobody's' not found"


def archive_of(task: StoredTask | Object) -> list[str]:
    assert isinstance(task, dict)
    with tarfile.open(fileobj=io.BytesIO(task["context_tgz"])) as archive:
        return archive.getnames()


FILES = [{"path": "a.py", "type": 48, "content": base64.b64encode(b"print(1)").decode(), "mtime": 7, "mode": 0o100644}]


def test_files_go_along(user: httpx.Client, world: World) -> None:
    ident = launch(user, "command", {"entrypoint": ["x"]}, files=FILES)["command"]["id"]
    assert archive_of(row_of(world, ident)) == ["a.py"]
    context = user.get(f"/api/v1/tasks/{ident}/context_directory").json()
    assert base64.b64decode(context["b64Tgz"]) == row_of(world, ident)["context_tgz"]
    empty = launch(user, "command")["command"]["id"]
    assert user.get(f"/api/v1/tasks/{empty}/context_directory").json() == {"b64Tgz": ""}


REFUSED: list[tuple[Object, Object, int, str]] = [
    ({"x": 1}, {}, 400, f'{UNPREPARED}unable to decode the merged config: {{"x":1}}: json: unknown field "x"'),
    (
        {"work_dir": "/w"},
        {"files": FILES},
        400,
        f"{UNPREPARED}cannot set work_dir and context directory at the same time",
    ),
    ({}, {"workspaceId": 987}, 404, f"{UNPREPARED}workspace '987' not found"),
    (
        {"resources": {"resource_pool": "x"}},
        {},
        400,
        f"{UNPREPARED}resource pool x does not exist or is not available to workspace ID 1",
    ),
    ({}, {"files": [{"path": "../x"}]}, 400, f"{UNPREPARED}'../x' is not a path inside of the uploaded directory"),
    (
        {"resources": {"slots": -1}},
        {},
        400,
        "invalid command config: Check Failed! 2 errors found:\n"
        "\terror found at root.Resources: slots must be >= 0: -1 is less than 0\n"
        "\terror found at root: resources.slots must be >= 0: -1 is less than 0",
    ),
    (
        {"entrypoint": ["x" * 140_000]},
        {},
        400,
        "an argument of the task is too long: 140000 bytes, of 131071 that Linux starts a program with",
    ),
    (
        {"environment": {"environment_variables": ["LONG=" + "x" * 140_000]}},
        {},
        400,
        "the variable LONG is too long: 140005 bytes, of 131071 that Linux starts a program with",
    ),
]


@pytest.mark.parametrize(("config", "body", "status", "says"), REFUSED, ids=[says[-40:] for *_, says in REFUSED])
def test_what_cannot_be_launched_is_refused_and_leaves_nothing(
    user: httpx.Client, world: World, config: Object, body: Object, status: int, says: str
) -> None:
    before = count(world, jobs)
    assert refused(user, "command", config, status=status, **body) == says
    assert count(world, jobs) == before


@pytest.mark.parametrize("text", ["\0", "\ud800"])
def test_text_that_no_database_holds_is_refused(user: httpx.Client, text: str) -> None:
    for config in ({"description": text}, {"entrypoint": [text]}, {"slurm": {text: 1}}):
        body = json.dumps({"config": config})
        assert user.post("/api/v1/commands", content=body).status_code == 400


def test_more_slots_than_a_node_has_are_refused(user: httpx.Client, world: World) -> None:
    world.publish(two_nodes())
    says = f"{UNPREPARED}request unfulfillable, please try requesting less slots"
    body = {"config": {"resources": {"slots": 5}}, "preview": True}
    # It may take the api a moment to hear of the nodes.
    wait_until(lambda: user.post("/api/v1/notebooks", json=body).status_code == 400, what="the launch is refused")
    assert refused(user, "notebook", body["config"], preview=True) == says
    launch(user, "notebook", {"resources": {"slots": 4}}, preview=True)


def test_nobody_launches_in_a_workspace_that_is_closed(user: httpx.Client, world: World) -> None:
    ident = world.in_database(lambda tx: insert_workspace(tx, name="closed", default_aux_pool="gpus"))
    task = launch(user, "command", {"resources": {"slots": 0}}, workspaceId=ident)["command"]
    assert (task["workspaceId"], task["resourcePool"]) == (ident, "gpus")
    for columns, why in (({"archived": True}, "archived"), ({"archived": False, "state": "DELETING"}, "being deleted")):
        closed = update(workspaces).where(workspaces.c.id == ident).values(**columns)
        world.in_database(lambda tx, closed=closed: tx.execute(closed))
        says = refused(user, "command", {}, status=404, workspaceId=ident)
        assert says == f"{UNPREPARED}workspace '{ident}' not found: it is {why}"


def test_a_tensorboard_shows_experiments_and_trials(user: httpx.Client, world: World) -> None:
    directory = {"type": "directory", "container_path": "/data/x"}
    mounts = [{"host_path": "/host", "container_path": "/data", "read_only": False, "propagation": "rprivate"}]
    first = new_experiment(world)
    second = new_experiment(world, checkpoint_storage=directory, bind_mounts=mounts)
    trial = world.in_database(lambda tx: insert_trial(tx, experiment_id=second))
    config = {"description": "mine", "resources": {"slots": 7}, "tensorboard_args": ["--x"]}
    answer = launch(user, "tensorboard", config, experimentIds=[first], trialIds=[trial])
    shown = answer["tensorboard"]
    assert (shown["experimentIds"], shown["trialIds"]) == ([first], [trial])
    assert shown["serviceAddress"] == f"/proxy/{shown['id']}/"
    assert shown["description"].startswith("TensorBoard (")
    assert answer["config"]["resources"]["slots"] == 0
    assert answer["config"]["environment"]["image"]["cpu"] == "of-experiment-cpu"
    task = stored(world, shown["id"])
    storage, log_dirs, argument = task.argv
    assert (storage, argument) == ("/run/determined/tensorboard/storage_config.json", "--x")
    cluster = user.get("/api/v1/master").json()["clusterId"]
    assert log_dirs.split(",") == [
        f"/determined_shared_fs/{cluster}/tensorboard/experiment/{first}/",
        f"/data/x/{cluster}/tensorboard/experiment/{second}/trial/{trial}/",
    ]
    assert json.loads(task.files[0].content) == directory
    assert (task.shared_fs_host_path, [mount.host_path for mount in task.bind_mounts]) == ("/storage", ["/host"])
    image = {"environment": {"image": "mine"}}
    assert launch(user, "tensorboard", image, experimentIds=[first])["config"]["environment"]["image"]["cpu"] == "mine"


NOTHING_TO_SHOW: list[tuple[Object, int, str]] = [
    ({}, 400, "must set experiment, trial ids, or filters"),
    ({"experimentIds": None, "trialIds": None, "filters": None}, 400, "must set experiment, trial ids, or filters"),
    ({"experimentIds": [99887]}, 404, f"{UNPREPARED}experiment '99887' not found"),
    ({"trialIds": [99887]}, 404, f"{UNPREPARED}trial '99887' not found"),
    ({"filters": {"name": "nothing is called like this"}}, 400, f"{UNPREPARED}no experiments found"),
]


@pytest.mark.parametrize(("body", "status", "says"), NOTHING_TO_SHOW, ids=[str(body) for body, *_ in NOTHING_TO_SHOW])
def test_a_tensorboard_of_nothing_is_refused(user: httpx.Client, body: Object, status: int, says: str) -> None:
    assert refused(user, "tensorboard", {}, status=status, **body) == says


def test_filters_stand_in_place_of_experiments(user: httpx.Client, world: World) -> None:
    wanted = new_experiment(world, name="found by its name")
    answer = launch(user, "tensorboard", {}, filters={"name": "found by its name"}, experimentIds=[99887])
    assert f"experiment/{wanted}/" in stored(world, answer["tensorboard"]["id"]).argv[1]


def test_a_client_that_asks_for_more_slots_than_there_are_is_told(det: Det, world: World) -> None:
    world.publish(two_nodes())
    arguments = ("command", "run", "-d", "--config", "resources.slots=10485", "true")
    wait_until(lambda: "request unfulfillable" in det.run(*arguments).err, what="the launch is refused")


def test_an_image_of_the_users_choice_is_that_of_a_tensorboard(det: Det, experiment: int) -> None:
    image = ("--config", "environment.image=mine")
    ident = det("tensorboard", "start", "-d", "--no-browser", *image, str(experiment)).out.split()[-1]
    found = yaml.safe_load(det("tensorboard", "config", ident).out)["environment"]["image"]
    assert found == {"cpu": "mine", "cuda": "mine", "rocm": "mine"}


def test_launches_by_the_client(det: Det, world: World, experiment: int) -> None:
    (det.home / "config.yaml").write_text(
        "environment:\n  environment_variables: [TEST=TEST]\n"
        "  pod_spec: {spec: {affinity: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}\n"
        "resources: {shm_size: 1.5g}\n"
    )
    (det.home / "startup-hook.sh").write_text("echo hook\n")
    command = ["--config-file", "config.yaml", "--include", "startup-hook.sh", "-v", "/host:/inside"]
    overrides = ["--config", "environment.environment_variables='A=true','B'", "--config", "resources.slots=0"]
    det("template", "create", "ours", "config.yaml")
    ident = det("command", "run", "-d", *command, *overrides, "echo", "a b").out.split()[-1]
    row = row_of(world, ident)
    task = from_document(row["spec"])
    assert task.argv == ("echo", "a b")
    assert task.shm_size_bytes == 1610612736
    assert [(mount.host_path, mount.container_path) for mount in task.bind_mounts] == [("/host", "/inside")]
    assert archive_of(row) == ["startup-hook.sh"]
    for noun in ("notebook", "shell"):
        arguments = ["--no-browser"] if noun == "notebook" else []
        ident = det(noun, "start", "-d", *arguments, "--template", "ours").out.split()[-1]
        assert "TEST=TEST" in det(noun, "config", ident).out
    ident = det("tensorboard", "start", "-d", "--no-browser", str(experiment)).out.split()[-1]
    assert ident in det("tensorboard", "list", "-q").out
    assert "unknown field" in det.fails("notebook", "start", "-d", "--config", "nonsense=1").err
