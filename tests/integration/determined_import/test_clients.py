"""Afterwards people log in as before, and the unmodified client lists, describes and downloads what it did."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from deploy.determined_import.importing import run_import
from libs.clock import SystemClock
from libs.cluster.loading import load_cluster_config
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Connection, connect_database
from libs.db.tables.tasks import allocations, tasks
from services.scheduler.allocations.task_tokens import TaskTokens
from services.scheduler.experiments.reconciler import ExperimentReconciler
from services.scheduler.orders.task_specs import TaskMaterial
from services.scheduler.transactions.rows import AllocationRow, row_of
from tests.harness import NatsServer
from tests.harness.api import ApiProcess
from tests.harness.containers import ContainerNats
from tests.harness.det import Det
from tests.harness.determined.rows import (
    ADA,
    CHECKPOINT,
    FINISHED,
    FINISHED_TRIAL,
    LATEST,
    PASSWORD,
    TEAM,
    UNFINISHED,
    VISION,
)
from tests.integration.api.conftest import run_async
from tests.integration.api.world import CLUSTER

BEGUN_TRIAL = 1012
"""Of the unfinished experiment; it has the newest checkpoint."""
WITH_OLD_POOL = CLUSTER.replace("resource_pools:\n", "resource_pools:\n  - {pool_name: default}\n")


@pytest.fixture(scope="module")
def api(
    old_url: str,
    database_url: str,
    nats_server: NatsServer | ContainerNats,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ApiProcess]:
    """An api of the installation that everything was imported into."""
    run_async(run_import(source_url=old_url, target_url=database_url, with_logs=True, say=lambda _line: None))
    directory = tmp_path_factory.mktemp("api")
    cluster = directory / "cluster.yaml"
    cluster.write_text(WITH_OLD_POOL)
    settings = {"cluster_config": str(cluster)}
    with ApiProcess(directory, database_url=database_url, bus_url=nats_server.url, settings=settings) as api:
        yield api


@pytest.fixture(scope="module")
def ada(api: ApiProcess) -> Iterator[httpx.Client]:
    with api.client("ada", PASSWORD) as client:
        yield client


def get(client: httpx.Client, path: str) -> dict:  # type: ignore[type-arg]
    reply = client.get(path)
    assert reply.status_code == 200, reply.text
    return reply.json()  # type: ignore[no-any-return]


def test_everybody_logs_in_with_the_old_password_and_nobody_with_another(api: ApiProcess) -> None:
    logins = [("admin", PASSWORD), ("determined", ""), ("ada", PASSWORD), ("admin", ""), ("gone", "")]
    with httpx.Client(base_url=api.url, timeout=60) as client:
        replies = [
            client.post("/api/v1/auth/login", json={"username": name, "password": password, "isHashed": False})
            for name, password in logins
        ]
    assert [reply.status_code for reply in replies] == [200, 200, 200, 401, 401]


def test_people_workspaces_and_projects_are_as_they_were(ada: httpx.Client) -> None:
    me = get(ada, "/api/v1/me")["user"]
    assert (me["id"], me["agentUserGroup"]["agentUser"]) == (ADA, "ada")
    workspace = get(ada, f"/api/v1/workspaces/{TEAM}")["workspace"]
    assert (workspace["name"], workspace["pinned"], workspace["numExperiments"]) == ("Team", True, 4)
    project = get(ada, f"/api/v1/projects/{VISION}")["project"]
    assert (project["key"], project["notes"][0]["name"]) == ("VIS", "plan")
    assert get(ada, "/api/v1/projects/key/old")["project"]["id"] == VISION, "by a key that it had before"
    assert get(ada, "/api/v1/users/setting")["settings"] == [{"key": "theme", "storagePath": "ui", "value": '"dark"'}]
    assert get(ada, "/api/v1/templates/small")["template"]["workspaceId"] == TEAM


def test_experiments_and_trials_are_as_they_were(ada: httpx.Client) -> None:
    listed = {each["id"]: each for each in get(ada, "/api/v1/experiments")["experiments"]}
    finished = listed[FINISHED]
    assert (finished["state"], finished["numTrials"], finished["username"]) == ("STATE_COMPLETED", 1, "ada")
    assert listed[UNFINISHED]["state"] == "STATE_PAUSED"
    experiment = get(ada, f"/api/v1/experiments/{FINISHED}")
    assert experiment["experiment"]["bestTrialId"] == FINISHED_TRIAL
    assert experiment["config"]["searcher"]["name"] == "random"
    trial = get(ada, f"/api/v1/trials/{FINISHED_TRIAL}")["trial"]
    assert trial["bestValidation"]["metrics"]["avgMetrics"] == {"loss": 0.25}
    assert trial["summaryMetrics"]["validation_metrics"]["loss"]["mean"] == 0.375
    assert trial["bestCheckpoint"]["uuid"] == CHECKPOINT
    assert trial["metadata"] == {"owner": {"team": "vision"}}
    assert trial["wallClockTime"] == 1800
    history = get(ada, f"/api/v1/experiments/{FINISHED}/validation-history")["validationHistory"]
    assert [point["searcherMetric"] for point in history] == [0.5, 0.25]


def test_metrics_of_every_group_can_be_read(ada: httpx.Client) -> None:
    reply = ada.get(f"/api/v1/trials/metrics/trial_metrics?trialIds={FINISHED_TRIAL}")
    groups = {word for word in ("training", "validation", "fairness", "cpu") if f'"group":"{word}"' in reply.text}
    assert groups == {"training", "validation", "fairness", "cpu"}


@pytest.fixture(scope="module")
def det(api: ApiProcess, tmp_path_factory: pytest.TempPathFactory) -> Det:
    det = Det(url=api.url, home=tmp_path_factory.mktemp("det"))
    det("user", "login", "ada", answers=[PASSWORD])
    return det


def test_the_client_lists_and_describes(det: Det) -> None:
    assert f"old-{FINISHED}" in det("experiment", "list").out
    assert str(FINISHED_TRIAL) in det("experiment", "describe", str(FINISHED)).out
    assert CHECKPOINT in det("checkpoint", "describe", CHECKPOINT).out
    lines = det("trial", "logs", str(FINISHED_TRIAL)).out
    assert "INFO: hello\n" in lines
    assert "grüß dich" in lines


def test_models_are_as_they_were_and_keep_their_checkpoints(ada: httpx.Client, det: Det) -> None:
    (model,) = get(ada, "/api/v1/models")["models"]
    assert (model["id"], model["name"], model["labels"], model["metadata"]) == (8, "mnist", ["a, b", "c"], {"a": 1})
    assert (model["workspaceId"], model["username"], model["numVersions"]) == (TEAM, "ada", 1)
    version = get(ada, "/api/v1/models/mnist/versions/1")["modelVersion"]
    assert (version["id"], version["name"], version["checkpoint"]["uuid"]) == (15, "v1", CHECKPOINT)
    reports = get(ada, "/api/v1/models/8/versions/1/metrics?metricGroup=validation")["metrics"]
    assert {report["trialId"] for report in reports} == {FINISHED_TRIAL}
    assert CHECKPOINT in det("model", "describe", "mnist").out
    assert "in the model registry" in det.fails("checkpoint", "delete", CHECKPOINT, "--yes").err
    assert "registered as model versions" in det.fails("experiment", "delete", str(FINISHED), "--yes").err
    made = ada.post("/api/v1/models/mnist/versions", json={"checkpointUuid": LATEST}).json()["modelVersion"]
    assert (made["version"], made["id"]) == (2, 16), "new ids follow behind"


def test_the_client_downloads_checkpoints_and_model_definitions(det: Det, tmp_path: Path) -> None:
    for uuid in (CHECKPOINT, LATEST):  # one in a storage of its own, one in that of its experiment
        target = tmp_path / uuid
        det("checkpoint", "download", uuid, "--output-dir", str(target), "--mode", "master")
        assert (target / "weights").read_bytes() == b"12345"
    det("experiment", "download-model-def", str(FINISHED), "--output-dir", str(tmp_path))
    (archive,) = tmp_path.glob("*.tgz") or tmp_path.glob("*.tar.gz")
    assert tarfile.is_tarfile(archive)


def test_a_search_can_be_searched_for_in_logs(ada: httpx.Client) -> None:
    trial = get(ada, f"/api/v1/trials/{FINISHED_TRIAL}")["trial"]
    reply = ada.get(f"/api/v1/tasks/{trial['taskId']}/logs?searchText=broken")
    assert reply.text.count("broken") >= 1


@pytest.fixture
def fork(ada: httpx.Client, det: Det) -> int:
    """An imported experiment, submitted again."""
    body = {"config": det("experiment", "config", str(FINISHED)).out, "parentId": FINISHED, "activate": True}
    reply = ada.post("/api/v1/experiments", json=body)
    assert reply.status_code == 200, reply.text
    made = reply.json()["experiment"]
    assert made["forkedFrom"] == FINISHED
    return int(made["id"])


async def test_work_goes_on_where_it_was(det: Det, fork: int, database_url: str) -> None:
    """Activated and forked: the scheduler asks for slots, from the newest checkpoint where there is one."""
    det("experiment", "activate", str(UNFINISHED))
    cluster = load_cluster_config(None)
    async with connect_database(DatabaseSettings(url=database_url, pool_size=2)) as db:
        reconciler = ExperimentReconciler(db=db, clock=SystemClock(), cluster=cluster)
        for experiment in (UNFINISHED, fork):
            await reconciler.reconcile(experiment)
        async with db.read() as connection:
            rows = await pending(connection, UNFINISHED)
            material = await TaskMaterial.load(connection, rows, cluster=cluster)
            trials = [material.spec(row, TaskTokens(session="", user="")).trial for row in rows]
            (begun,) = [trial for trial in trials if trial is not None and trial.trial_id == BEGUN_TRIAL]
            assert (begun.latest_checkpoint, begun.steps_completed) == (LATEST, 5)
            assert await pending(connection, fork) != []


async def pending(connection: Connection, experiment: int) -> list[AllocationRow]:
    """What of an experiment waits for its slots."""
    of_it = select(tasks.c.task_id).where(tasks.c.experiment_id == experiment)
    query = select(allocations).where(allocations.c.task_id.in_(of_it), allocations.c.state == "PENDING")
    return [row_of(AllocationRow, row) for row in (await connection.execute(query)).mappings()]
