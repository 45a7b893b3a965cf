"""The unmodified SDK, run by the client's own Python."""

from __future__ import annotations

import json

import pytest

from tests.contract.conftest import Finished
from tests.harness.client import Client
from tests.programs import DIRECTORY, configuration


def test_an_experiment_from_creation_to_deletion(det: Client) -> None:
    seen = det.sdk(
        """
import pathlib, shutil
config, program = json.loads(sys.argv[1]), sys.argv[2]
code = pathlib.Path("code")
code.mkdir()
shutil.copy(program, code)
experiment = client.create_experiment(config=config, model_dir=code)
trial = experiment.await_first_trial()
followed = list(trial.iter_logs(follow=True))
state = experiment.wait(interval=0.2)
trial.reload()
checkpoint = experiment.list_checkpoints(max_results=1)[0]
path = pathlib.Path(checkpoint.download(sys.argv[3]))
experiment.set_name("sdk"); experiment.add_label("one"); experiment.set_notes("noted")
experiment.archive(); experiment.unarchive()
experiment.reload()
seen = {
    "state": state.value,
    "trial": trial.state.value,
    "followed": followed == list(trial.iter_logs()),
    "head": followed[:5] == list(trial.iter_logs(head=5)),
    "tail": followed[-5:] == list(trial.iter_logs(tail=5)),
    "training": [(report.steps_completed, report.metrics["loss"]) for report in trial.iter_metrics("training")],
    "validation": [report.steps_completed for report in trial.iter_metrics("validation")],
    "summary": trial.summary_metrics["validation_metrics"]["loss"]["last"],
    "hparams": trial.hparams,
    "step": (path / "step").read_text(),
    "checkpoint_trial": checkpoint.training.trial_id == trial.id,
    "name": experiment.name,
    "labels": sorted(experiment.labels),
    "code": bool(pathlib.Path(experiment.download_code(sys.argv[3])).stat().st_size),
}
experiment.delete()
result(seen)
""",
        json.dumps(configuration("steps.py", name="sdk")),
        DIRECTORY / "steps.py",
        det.home / "downloaded",
    )
    assert seen == {
        "state": "STATE_COMPLETED",
        "trial": "STATE_COMPLETED",
        "followed": True,
        "head": True,
        "tail": True,
        "training": [[1, 1.0], [2, 0.5], [3, pytest.approx(1 / 3)]],
        "validation": [3],
        "summary": pytest.approx(1 / 3),
        "hparams": {"steps": 3, "pause_s": 0},
        "step": "3",
        "checkpoint_trial": True,
        "name": "sdk",
        "labels": ["one"],
        "code": True,
    }


def test_looking_things_up(det: Client, finished: Finished) -> None:
    seen = det.sdk(
        """
experiment, trial, checkpoint = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
result({
    "whoami": client.whoami().username,
    "experiment": client.get_experiment(experiment).name,
    "listed": experiment in [one.id for one in client.list_experiments()],
    "trial": client.get_trial(trial).get_experiment().id == experiment,
    "checkpoint": client.get_checkpoint(checkpoint).metadata["steps_completed"],
    "streamed": [report.steps_completed for report in client.iter_trials_metrics([trial], "training")],
    "users": sorted(user.username for user in client.list_users() if user.user_id <= 2),
})
""",
        finished.experiment,
        finished.trial,
        finished.checkpoint,
    )
    assert seen == {
        "whoami": "determined",
        "experiment": "finished",
        "listed": True,
        "trial": True,
        "checkpoint": 3,
        "streamed": [1, 2, 3],
        "users": ["admin", "determined"],
    }


def test_charts(det: Client, finished: Finished) -> None:
    """What pages draw, read with the client's own bindings, which refuse a message of another shape."""
    seen = det.sdk(
        """
from determined.common.api import bindings
experiment, trial, checkpoint = int(sys.argv[1]), int(sys.argv[2]), client.get_checkpoint(sys.argv[3])
session = checkpoint._session
wanted = {"experimentId": experiment, "metricName": "loss"}
validation = {**wanted, "group": "validation"}
(compared,) = bindings.get_CompareTrials(session, trialIds=[trial], metricNames=["loss"]).trials
(names,) = bindings.get_ExpMetricNames(session, ids=[experiment])
(batches,) = bindings.get_MetricBatches(session, **wanted, metricType=bindings.v1MetricType.TRAINING)
(snapshot,) = bindings.get_TrialsSnapshot(session, **validation, batchesProcessed=2, batchesMargin=1)
labels = bindings.v1TrialProfilerMetricLabels(name="gpu_util", trialId=trial, agentId="n1", gpuUuid="g1")
now = "2030-01-01T00:00:00Z"
posted = bindings.v1TrialProfilerMetricsBatch(values=[0.5], batches=[1], timestamps=[now], labels=labels)
bindings.post_PostTrialProfilerMetricsBatch(
    session, body=bindings.v1PostTrialProfilerMetricsBatchRequest(batches=[posted])
)
(profiled,) = bindings.get_GetTrialProfilerMetrics(session, labels_trialId=trial, labels_name="gpu_util")
(available,) = bindings.get_GetTrialProfilerAvailableSeries(session, trialId=trial, follow=True)
source = bindings.v1TrialSourceInfo(
    checkpointUuid=checkpoint.uuid, trialId=trial,
    trialSourceInfoType=bindings.v1TrialSourceInfoType.INFERENCE,
)
bindings.post_ReportTrialSourceInfo(session, body=bindings.v1ReportTrialSourceInfoRequest(trialSourceInfo=source))
result({
    "compared": {each.group: [point.batches for point in each.data] for each in compared.metrics},
    "names": [names.searcherMetrics, names.trainingMetrics, names.validationMetrics],
    "batches": batches.batches,
    "snapshot": [(each.trialId == trial, each.batchesProcessed, each.metric) for each in snapshot.trials],
    "profiled": profiled.batch.values,
    "available": [label.gpuUuid for label in available.labels],
    "by_checkpoint": [report.steps_completed for report in checkpoint.get_metrics("training")],
})
""",
        finished.experiment,
        finished.trial,
        finished.checkpoint,
    )
    assert seen == {
        "compared": {"training": [1, 2, 3], "validation": [3]},
        "names": [["loss"], ["loss"], ["loss"]],
        "batches": [1, 2, 3],
        "snapshot": [[True, 3, pytest.approx(1 / 3)]],
        "profiled": [0.5],
        "available": ["g1"],
        "by_checkpoint": [1, 2, 3],
    }


def test_checkpoint_metadata_and_files(det: Client, finished: Finished) -> None:
    seen = det.sdk(
        """
checkpoint = client.get_checkpoint(sys.argv[1])
checkpoint.add_metadata({"stage": "tested"})
checkpoint.reload()
added = checkpoint.metadata.get("stage")
checkpoint.remove_metadata(["stage"])
checkpoint.reload()
result([added, checkpoint.metadata.get("stage"), sorted(checkpoint.resources)])
""",
        finished.checkpoint,
    )
    assert seen[:2] == ["tested", None]
    assert "step" in seen[2]


def test_workspaces_and_projects(det: Client) -> None:
    seen = det.sdk(
        """
workspace = client.create_workspace("sdk lab")
project = workspace.create_project("sound", description="ears")
project.set_description("two ears")
project.add_note("todo", "listen")
project.reload()
seen = [client.get_workspace("sdk lab").id == workspace.id, workspace.get_project("sound").description,
        [one.name for one in workspace.list_projects()], [note["name"] for note in project.notes]]
workspace.delete_project("sound")
client.delete_workspace("sdk lab")
result(seen + ["sdk lab" in [one.name for one in client.list_workspaces()]])
"""
    )
    assert seen == [True, "two ears", ["sound"], ["todo"], False]


def test_what_does_not_exist_is_not_found(det: Client) -> None:
    seen = det.sdk(
        """
from determined.common.api import errors
def text(look, ident):
    try:
        look(ident)
    except errors.NotFoundException as error:
        return str(error)
result([text(client.get_experiment, 999999), text(client.get_trial, 999999), text(client.get_checkpoint, "0" * 8)])
"""
    )
    assert seen[:2] == ["experiment '999999' not found", "trial '999999' not found"]
    assert seen[2] is not None
    assert "not found" in seen[2]
