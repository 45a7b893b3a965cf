"""Checkpoints in every storage through the unmodified client and SDK: by trial, by experiment, by UUID."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import update

from libs.db.engine import Connection
from libs.db.tables.trials import trials
from tests.builders import insert_checkpoint, insert_experiment, insert_job, insert_metrics, insert_task, insert_trial
from tests.harness.bucket_servers import KINDS, bucket_server
from tests.harness.client import Client
from tests.harness.installed_client import client_python
from tests.integration.api.world import World

pytestmark = pytest.mark.slow

NOW = datetime(2030, 1, 1, tzinfo=UTC)
UPLOAD = """
import json, sys
from determined.common import storage
manager = storage.build(json.loads(sys.argv[1]), container_path=None)
for source in sys.argv[2:]:
    manager.upload(source, source.rpartition("/")[2])
"""
SDK = """
trial = client.get_trial(int(sys.argv[1]))
checkpoints = trial.list_checkpoints(sort_by=client.CheckpointSortBy.BATCH_NUMBER, order_by=client.OrderBy.ASC)
latest = trial.list_checkpoints(sort_by=client.CheckpointSortBy.BATCH_NUMBER, order_by=client.OrderBy.DESC)[0]
path = client.get_checkpoint(latest.uuid).download(path=sys.argv[2], mode=client.DownloadMode(sys.argv[3]))
experiment = client.get_experiment(int(sys.argv[4]))
result({"all": [each.uuid for each in checkpoints], "latest": latest.uuid, "path": path,
        "of": [each.uuid for each in experiment.list_checkpoints(sort_by="loss", order_by=client.OrderBy.ASC)]})
"""
ELSEWHERE = """
import json, pathlib
from determined import core
from determined.experimental import core_v2
core_v2.init(config=core_v2.Config(
    name="elsewhere", external_experiment_id=sys.argv[1], external_trial_id="one",
    checkpoint_storage=json.loads(sys.argv[2]),
), tensorboard_mode=core.TensorboardMode.MANUAL)
start, checkpoint = core_v2.info.trial._steps_completed, core_v2.info.latest_checkpoint
if checkpoint is not None:
    with core_v2.checkpoint.restore_path(checkpoint) as path:
        assert (pathlib.Path(path) / "step").read_text() == str(start)
core_v2.train.report_validation_metrics(steps_completed=start + 1, metrics={"loss": 1.0})
with core_v2.checkpoint.store_path({"steps_completed": start + 1}) as (path, uuid):
    (path / "step").write_text(str(start + 1))
core_v2.close()
result({"start": start, "uuid": uuid})
"""


@dataclass(frozen=True)
class Saved:
    """A trial with two checkpoints: the first is the better one."""

    experiment: int
    trial: int
    best: str
    latest: str
    section: Mapping[str, Any]
    client: Client


@contextmanager
def section_of(kind: str, folder: Path) -> Iterator[tuple[Mapping[str, Any], Mapping[str, str]]]:
    """A checkpoint_storage section, and the variables that programs need for it."""
    if kind == "shared_fs":
        yield {"type": kind, "host_path": str(folder), "storage_path": "kept"}, {}
    elif kind == "directory":
        yield {"type": kind, "container_path": str(folder)}, {}
    else:
        with bucket_server(kind) as server:
            yield server.section, server.variables


@pytest.fixture(scope="module", params=["shared_fs", "directory", *KINDS])
def saved(request: pytest.FixtureRequest, world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Saved]:
    folder, home = tmp_path_factory.mktemp("storage"), tmp_path_factory.mktemp("client")
    with section_of(request.param, folder) as (section, variables), pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)  # of the api too
        uuids = [str(uuid4()) for _ in range(2)]
        for step, uuid in enumerate(uuids, 1):
            (home / uuid / "code").mkdir(parents=True)
            (home / uuid / "step").write_text(str(step))
            (home / uuid / "code" / "train.py").write_text("print()")
            (home / uuid / "metadata.json").write_text(json.dumps({"steps_completed": step}))
        argv = [str(client_python()), "-c", UPLOAD, json.dumps(dict(section)), *(str(home / uuid) for uuid in uuids)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        experiment, trial = world.in_database(lambda tx: _rows(tx, section, uuids))
        with world.api(f"with-{request.param}") as api:
            client = Client(api.url, home, env=variables)
            client("user", "login", "admin", answers=("",))
            best, latest = uuids
            yield Saved(experiment=experiment, trial=trial, best=best, latest=latest, section=section, client=client)


async def _rows(tx: Connection, section: Mapping[str, Any], uuids: list[str]) -> tuple[int, int]:
    config = {
        "name": "stored",
        "searcher": {"name": "single", "metric": "loss", "smaller_is_better": True},
        "checkpoint_storage": dict(section),
        "hyperparameters": {},
    }
    job = await insert_job(tx, submitted_at=NOW)
    ended = {"state": "COMPLETED", "end_time": NOW}
    experiment = await insert_experiment(tx, config=config, job_id=job, **ended)
    trial = await insert_trial(tx, experiment_id=experiment, **ended)
    task = await insert_task(tx, job_id=job, trial_id=trial, experiment_id=experiment)
    for step, uuid in enumerate(uuids, 1):
        validation = await insert_metrics(tx, trial_id=trial, step=step, values={"loss": step / 2})
        if step == 1:
            best = {"best_validation_id": validation, "searcher_metric_value": 0.5}
            await tx.execute(update(trials).where(trials.c.id == trial).values(best))
        await insert_checkpoint(
            tx,
            uuid=uuid,
            task_id=task,
            trial_id=trial,
            experiment_id=experiment,
            steps_completed=step,
            report_time=NOW + timedelta(minutes=step),
            metadata={"steps_completed": step},
            resources={"step": 1, "code/": 0, "code/train.py": 7, "metadata.json": 22},
        )
    return experiment, trial


@pytest.mark.parametrize(
    ("asked", "step"),
    [(["--latest"], "1"), (["--best", "--sort-by", "loss", "--smaller-is-better", "true"], "2")],
    ids=["latest", "best"],
)
def test_a_checkpoint_of_a_trial(saved: Saved, tmp_path: Path, asked: list[str], step: str) -> None:
    """Which one is the client's choice: it takes the last of a list that begins with the one that was asked for."""
    to = str(tmp_path / "files")
    assert saved.client("trial", "download", str(saved.trial), *asked, "-o", to, "--quiet").strip() == to
    assert (tmp_path / "files" / "step").read_text() == step
    assert (tmp_path / "files" / "code" / "train.py").read_text() == "print()"


@pytest.mark.parametrize("mode", ["auto", "master"])
def test_a_checkpoint_by_its_uuid(saved: Saved, tmp_path: Path, mode: str) -> None:
    saved.client("checkpoint", "download", saved.latest, "--mode", mode, "-o", str(tmp_path / mode))
    assert (tmp_path / mode / "step").read_text() == "2"


def test_lists_and_descriptions(saved: Saved) -> None:
    listed = saved.client("experiment", "list-checkpoints", str(saved.experiment))
    assert saved.best in listed
    assert saved.latest in listed
    assert saved.best in saved.client("checkpoint", "describe", saved.best)


def test_the_best_of_an_experiment(saved: Saved, tmp_path: Path) -> None:
    saved.client("experiment", "download", str(saved.experiment), "--output-dir", str(tmp_path))
    assert (tmp_path / saved.best / "step").read_text() == "1"


def test_the_same_with_the_sdk(saved: Saved, tmp_path: Path) -> None:
    done = saved.client.sdk(SDK, saved.trial, tmp_path / "sdk", "master", saved.experiment)
    both = [saved.best, saved.latest]
    assert done == {"all": both, "latest": saved.latest, "path": str(tmp_path / "sdk"), "of": both}
    assert (tmp_path / "sdk" / "step").read_text() == "2"


def test_training_elsewhere_goes_on_from_what_it_has_saved(saved: Saved, tmp_path: Path) -> None:
    """``core_v2`` writes and reads the storage itself; what it saved is downloaded through the api."""
    # The client takes a shared folder as a path only.
    storage = saved.section["host_path"] if saved.section["type"] == "shared_fs" else dict(saved.section)
    arguments = (f"sweep-{saved.experiment}", json.dumps(storage))
    first, second = (saved.client.sdk(ELSEWHERE, *arguments) for _ in range(2))
    assert (first["start"], second["start"]) == (0, 1)
    for step, uuid in enumerate((first["uuid"], second["uuid"]), 1):
        saved.client("checkpoint", "download", uuid, "--mode", "master", "-o", str(tmp_path / uuid))
        assert (tmp_path / uuid / "step").read_text() == str(step)
