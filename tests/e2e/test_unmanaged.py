"""Training outside of the cluster with ``core_v2`` of the unmodified SDK (docs/reference/harness-protocol.md 16)."""

from __future__ import annotations

from tests.harness.client import Client
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until

TRAIN = """
import pathlib
from determined import core
from determined.experimental import core_v2
name, trial, storage = sys.argv[1:4]
core_v2.init(config=core_v2.Config(
    name="elsewhere", hparams={"lr": 0.5}, external_experiment_id=name, external_trial_id=trial,
    checkpoint_storage=storage, labels=["outside"],
), tensorboard_mode=core.TensorboardMode.MANUAL)
info = core_v2.info
start, checkpoint = info.trial._steps_completed, info.latest_checkpoint
if checkpoint is not None:
    with core_v2.checkpoint.restore_path(checkpoint) as path:
        assert (pathlib.Path(path) / "step").read_text() == str(start)
for step in range(start + 1, start + 4):
    core_v2.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
core_v2.train.report_validation_metrics(steps_completed=step, metrics={"loss": 1 / step})
with core_v2.checkpoint.store_path({"steps_completed": step}) as (path, _):
    (path / "step").write_text(str(step))
print(f"done after step {step}")
if len(sys.argv) > 4:
    sys.exit(int(sys.argv[4]))
core_v2.close()
result({"experiment": info.trial.experiment_id, "trial": info.trial.trial_id, "start": start, "task": info.task_id})
"""


def test_training_elsewhere_is_seen_and_goes_on_where_it_was(det: Client, look: Looking) -> None:
    storage = det.home / "elsewhere"
    first = det.sdk(TRAIN, "sweep", "one", storage)
    experiment, trial = first["experiment"], first["trial"]
    assert (first["start"], first["task"]) == (0, f"{experiment}.one")
    shown = look.experiment(experiment)
    assert (shown["state"], shown["unmanaged"], shown["progress"]) == ("STATE_COMPLETED", True, 1)
    assert "elsewhere" in det("experiment", "list")

    second = det.sdk(TRAIN, "sweep", "one", storage)
    assert second == {**first, "start": 3}
    assert look.steps(trial) == [1, 2, 3, 4, 5, 6]
    assert look.steps(trial, "validation") == [3, 6]
    other = det.sdk(TRAIN, "sweep", "two", storage)
    assert (other["experiment"], other["start"]) == (experiment, 0)
    assert [one["id"] for one in look.trials(experiment)] == [trial, other["trial"]]
    assert {one["state"] for one in look.trials(experiment)} == {"STATE_COMPLETED"}
    checkpoints = look.get(f"/trials/{trial}/checkpoints")["checkpoints"]
    assert sorted(one["metadata"]["steps_completed"] for one in checkpoints) == [3, 6]
    # Its stdout is its log.
    wait_until(lambda: "done after step 6" in " ".join(line["message"] for line in look.logs(trial)))
    described = det("trial", "describe", str(trial))  # which shows everything of it but its number
    assert all(one["uuid"] in described for one in checkpoints)
