"""Each method of experiments, trials and checkpoints of the unmodified SDK that ``tests/contract/test_sdk.py`` leaves
out: on what is there, on what is not, and without a login."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.harness.client import Client
from tests.integration.api.experiments.conftest import CONFIG, Api
from tests.integration.api.experiments.rows import START

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Client:
    return Client(api.url, tmp_path_factory.mktemp("home"))


async def sdk(client: Client, code: str, *arguments: object) -> Any:
    """In a thread: the api is in the loop of the test."""
    return await asyncio.to_thread(client.sdk, code, *arguments)


async def test_experiments_are_edited_and_moved(api: Api, client: Client) -> None:
    experiment, project = await api.create(CONFIG), await api.rows.project("sdk moves")
    seen = await sdk(
        client,
        """
experiment = client.get_experiment(int(sys.argv[1]))
experiment.set_description("described"); experiment.set_labels({"a", "b"}); experiment.remove_label("a")
experiment.move_to_project("sdk moves", "sdk moves")
states = []
for act in (experiment.activate, experiment.pause, experiment.cancel, experiment.kill):
    act(); experiment.reload(); states.append(experiment.state.value)
trials = experiment.list_trials()
trials[0].kill(); trials[0].reload()
result({
    "description": experiment.description, "labels": sorted(experiment.labels), "project": experiment.project_id,
    "states": states, "killed": trials[0].state.value,
    "trials": [
        [one.id for one in found] for found in (trials, experiment.get_trials(), experiment.iter_trials(limit=2))
    ],
})
""",
        experiment,
    )
    ids = [row.id for row in await api.rows.trials_of(experiment)]
    assert seen == {
        "description": "described",
        "labels": ["b"],
        "project": project,
        "states": ["STATE_QUEUED", "STATE_PAUSED", "STATE_STOPPING_CANCELED", "STATE_STOPPING_KILLED"],
        "killed": "STATE_STOPPING_KILLED",
        "trials": [ids, ids, ids],
    }


async def test_checkpoints_are_chosen_from_an_experiment_and_a_trial(api: Api, client: Client, tmp_path: Path) -> None:
    experiment = await api.create_empty()
    trial = await api.rows.trial(experiment, state="COMPLETED", total_batches=30, end_time=START)
    uuids = [await api.rows.checkpoint(experiment, trial, step) for step in (10, 20, 30)]
    for step, loss in ((10, 0.1), (20, 0.3), (30, 0.2)):
        await api.rows.metric(trial, step, "validation", {"loss": loss, "accuracy": loss})
        await api.rows.metric(trial, step, "training", {"loss": loss})
    await api.rows.set_experiment(experiment, state="COMPLETED", end_time=START)
    seen = await sdk(
        client,
        """
import warnings
warnings.simplefilter("ignore")
experiment, trial = client.get_experiment(int(sys.argv[1])), client.get_trial(int(sys.argv[2]))
def steps(*found): return [one.metadata["steps_completed"] for one in found]
by = {"sort_by": "accuracy", "smaller_is_better": False}
checkpoint = trial.select_checkpoint(latest=True)
checkpoint.write_metadata_file(sys.argv[3])
checkpoint.remove_files(["weights.pt"])
trial.top_checkpoint().delete()
experiment.delete_tensorboard_files()
ids = [trial.id]
result({
    "best": steps(experiment.top_checkpoint(), trial.top_checkpoint(), trial.select_checkpoint(best=True)),
    "most accurate": steps(
        experiment.top_checkpoint(**by), trial.top_checkpoint(**by), *experiment.top_n_checkpoints(2, **by)
    ),
    "latest": steps(checkpoint, trial.select_checkpoint(uuid=checkpoint.uuid)),
    "all": [sorted(steps(*trial.get_checkpoints())), sorted(steps(*trial.list_checkpoints()))],
    "written": json.load(open(sys.argv[3]))["steps_completed"],
    "metrics": [
        [report.steps_completed for report in reports] for reports in (
            trial.stream_metrics("validation"), trial.stream_training_metrics(), trial.stream_validation_metrics(),
            client.stream_trials_metrics(ids, "training"), client.stream_trials_training_metrics(ids),
            client.stream_trials_validation_metrics(ids),
        )
    ],
    "logs": list(trial.logs()),
})
""",
        experiment,
        trial,
        tmp_path / "metadata.json",
    )
    assert seen == {
        "best": [10, 10, 10],
        "most accurate": [20, 20, 20],  # of two it takes the best of each trial
        "latest": [30, 30],
        "all": [[10, 20, 30]] * 2,
        "written": 30,
        "metrics": [[10, 20, 30]] * 6,
        "logs": [],
    }
    asked = [(row.uuids, row.globs, row.delete_tensorboards) for row in await api.rows.gc_requests(experiment)]
    assert asked == [
        ([uuids[2]], ["weights.pt"], False),
        ([uuids[0]], ["**/*"], False),
        ([], [], True),
    ]


METHODS = """
from determined.common import api
from determined.common.api import errors
from determined.common.experimental import checkpoint, experiment, trial
session = client.get_experiment(int(sys.argv[1]))._session
if len(sys.argv) > 2:
    session = api.Session(session.master, session.username, "a token that was revoked", session.cert)
one, run = experiment.Experiment(999999, session), trial.Trial(999999, session)
files = checkpoint.Checkpoint(session, "no such checkpoint")
calls = {
    **{f"experiment.{name}": getattr(one, name) for name in (
        "reload", "activate", "pause", "cancel", "kill", "archive", "unarchive", "download_code", "list_trials",
        "list_checkpoints", "top_checkpoint", "await_first_trial", "delete_tensorboard_files")},
    **{f"experiment.{name}": (lambda act=getattr(one, name), value=value: act(value)) for name, value in (
        ("set_name", "x"), ("set_description", "x"), ("set_notes", "x"), ("set_labels", {"x"}))},
    **{f"trial.{name}": getattr(run, name) for name in ("reload", "kill", "list_checkpoints")},
    "trial.iter_logs": lambda: list(run.iter_logs()),
    "trial.iter_metrics": lambda: list(run.iter_metrics("training")),
    "checkpoint.reload": files.reload, "checkpoint.delete": files.delete,
    "checkpoint.remove_files": lambda: files.remove_files(["*"]),
}
said = {}
for name, call in calls.items():
    try:
        call()
        said[name] = "nothing"
    except Exception as error:
        said[name] = f"{type(error).__name__}: {error}"
result(said)
"""


async def test_what_is_not_there_is_said_to_be_not_found(api: Api, client: Client) -> None:
    said = await sdk(client, METHODS, await api.create(CONFIG))
    assert {name: text for name, text in said.items() if "not found" not in text} == {}


async def test_nothing_is_done_for_whose_login_is_over(api: Api, client: Client) -> None:
    said = await sdk(client, METHODS, await api.create(CONFIG), "no login")
    assert {name: text for name, text in said.items() if not text.startswith("UnauthenticatedException")} == {}
