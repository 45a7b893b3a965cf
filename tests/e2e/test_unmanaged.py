"""Training outside of the cluster with ``core_v2`` of the unmodified SDK (docs/reference/harness-protocol.md 16)."""

from __future__ import annotations

import pytest

from deploy.local.servers.ports import free_port
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


PROCESSES = """
import os, pathlib, subprocess
head = "import pathlib, sys\\nfrom determined import core\\nfrom determined.experimental import core_v2\\n"

def together(*programs):
    started = [subprocess.Popen([sys.executable, "-c", head + each, *sys.argv[1:]]) for each in programs]
    return [each.wait() for each in started]
"""
ENDINGS = (
    PROCESSES
    + """
program = '''
core_v2.init(config=core_v2.Config(name={0!r}, external_experiment_id={0!r}, external_trial_id="one",
                                   checkpoint_storage=sys.argv[1]), tensorboard_mode=core.TensorboardMode.MANUAL)
core_v2.train.report_training_metrics(steps_completed=1, metrics={{"loss": 0.5}})
pathlib.Path({0!r}).write_text(str(core_v2.info.trial.trial_id))
{1}
'''
endings = {"raises": "raise ValueError('no data')", "exits": "sys.exit(3)", "ends": "", "leaves": "sys.exit(0)"}
codes = dict(zip(endings, together(*(program.format(name, ending) for name, ending in endings.items()))))
result({name: [codes[name], int(pathlib.Path(name).read_text())] for name in endings})
"""
)


@pytest.mark.slow
def test_how_a_process_ends_is_how_its_trial_and_experiment_do(det: Client, look: Looking) -> None:
    ended = det.sdk(ENDINGS, det.home / "elsewhere")
    assert {name: code for name, (code, _) in ended.items()} == {"raises": 1, "exits": 3, "ends": 0, "leaves": 0}
    states = {}
    for name, (_, trial) in ended.items():
        shown = look.get(f"/trials/{trial}")["trial"]
        states[name] = (shown["state"], look.state(shown["experimentId"]))
        assert shown["endTime"] is not None
    failed, completed = ("STATE_ERROR", "STATE_ERROR"), ("STATE_COMPLETED", "STATE_COMPLETED")
    assert states == {"raises": failed, "exits": failed, "ends": completed, "leaves": completed}
    # What it said last is in its log too.
    said = "ValueError: no data"
    wait_until(lambda: said in " ".join(line["message"] for line in look.logs(ended["raises"][1])), what=said)


RANKS = (
    PROCESSES
    + """
program = '''
rank = {0}
distributed = core.DistributedContext(
    rank=rank, size=2, local_rank=rank, local_size=2, cross_rank=0, cross_size=1, chief_ip="127.0.0.1",
    pub_port={1}, pull_port={2})
core_v2.init(config=core_v2.Config(name="ranks", checkpoint_storage=sys.argv[1]), distributed=distributed,
             tensorboard_mode=core.TensorboardMode.MANUAL)
trial = core_v2.info.trial.trial_id
assert distributed.allgather(trial) == [trial, trial]
if rank == 0:
    core_v2.train.report_training_metrics(steps_completed=1, metrics={{"loss": 0.5}})
shard = pathlib.Path(f"shard-{{rank}}")
shard.mkdir()
(shard / f"part-{{rank}}").write_text(f"of rank {{rank}}")
uuid = core_v2.checkpoint.upload(shard, {{"steps_completed": 1}}, shard=True)
with core_v2.checkpoint.restore_path(uuid) as path:
    assert sorted(each.name for each in pathlib.Path(path).glob("part-*")) == ["part-0", "part-1"]
print(f"rank {{rank}} is done")
core_v2.close()
if rank == 0:
    pathlib.Path("ranks").write_text(f"{{trial}} {{uuid}}")
'''
codes = together(*(program.format(rank, *sys.argv[2:4]) for rank in range(2)))
trial, uuid = pathlib.Path("ranks").read_text().split()
result({"codes": codes, "trial": int(trial), "uuid": uuid})
"""
)


@pytest.mark.slow
def test_several_processes_are_one_trial(det: Client, look: Looking) -> None:
    done = det.sdk(RANKS, det.home / "elsewhere", free_port(), free_port())
    assert done["codes"] == [0, 0]
    shown = look.get(f"/trials/{done['trial']}")["trial"]
    assert shown["state"] == "STATE_COMPLETED"
    assert [trial["id"] for trial in look.trials(shown["experimentId"])] == [done["trial"]]
    assert look.steps(done["trial"]) == [1]
    [checkpoint] = look.get(f"/trials/{done['trial']}/checkpoints")["checkpoints"]
    assert checkpoint["uuid"] == done["uuid"]
    assert {"part-0", "part-1"} <= checkpoint["resources"].keys()
    lines = ["rank 0 is done", "rank 1 is done"]
    wait_until(
        lambda: all(line in " ".join(one["message"] for one in look.logs(done["trial"])) for line in lines),
        what="lines of both",
    )
