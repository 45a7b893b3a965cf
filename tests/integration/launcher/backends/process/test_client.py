"""The unmodified client inside a task: ``prep_container`` and ``exec.launch``, against a small fake master."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from libs.bus import Bus, BusSettings
from libs.events.orders import TaskFile, TaskSpec, TrialTask
from services.launcher.files import load_scripts
from tests.harness.installed_client import client_python
from tests.integration.launcher.fakes import FakeMaster
from tests.integration.launcher.launcher_harness import LauncherHarness, command, open_harness

A = "5.11111111-2222-4333-8444-555555555555.1"


@pytest.fixture(scope="session")
def det_python() -> str:
    return str(client_python())


@pytest.fixture
async def harness(
    bus: Bus, bus_settings: BusSettings, tmp_path: Path, det_python: str, isolation: str, master: FakeMaster
) -> AsyncIterator[LauncherHarness]:
    settings = {"RESOLUTE_TASKS__MASTER_URL": master.url}
    async with open_harness(bus, bus_settings.url, tmp_path, det_python, settings) as opened:
        yield opened


def context(**files: str) -> str:
    """A context directory as the master sends it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name.replace("_py", ".py"))
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return base64.b64encode(buffer.getvalue()).decode()


async def test_command_runs_in_its_context(harness: LauncherHarness, master: FakeMaster) -> None:
    master.context = context(hello_py="print('hello from the context')")
    await harness.run(A, command("python3", "hello.py", task=A.rpartition(".")[0]))
    ended = await harness.until_ended(A, timeout_s=60)
    assert ended.pods[0].exit_code == 0, harness.printed(A, "stderr")
    assert harness.printed(A)[-1] == "hello from the context"
    assert ("POST", f"/api/v1/allocations/{A}/proxy_address", {"proxyAddress": "127.0.0.1"}) in master.calls


def trial(harness: LauncherHarness, entrypoint: str) -> TaskSpec:
    config = {
        "entrypoint": entrypoint,
        "checkpoint_storage": {"type": "shared_fs", "host_path": "/unused", "storage_path": None},
        "searcher": {"name": "single", "metric": "loss", "smaller_is_better": True},
        "hyperparameters": {},
        "debug": False,
        "resources": {"slots_per_trial": 1},
    }
    return command(
        task=A.rpartition(".")[0],
        task_type="TRIAL",
        slots=1,
        shared_fs_host_path=str(harness.state_dir.parent / "checkpoints"),
        trial=TrialTask(
            experiment_id=5, trial_id=7, trial_run_id=1, seed=1, config=config, hparams={"lr": 0.5}, steps_completed=0
        ),
    )


TRAIN = (
    "import json, os, determined as det\n"
    "info = det.get_cluster_info()\n"
    "facts = [info.trial.trial_id, info.trial.hparams, info.slot_ids, info.container_addrs]\n"
    "print(json.dumps([*facts, os.environ.get('FROM_HOOK'), os.umask(0o777)]))\n"
)
CALLS = (
    f"tasks/{A.rpartition('.')[0]}/context_directory",
    f"allocations/{A}/acceleratorData",
    f"allocations/{A}/proxy_address",
    f"allocations/{A}/all_gather",
)


def called(master: FakeMaster) -> tuple[str, ...]:
    return tuple(path.removeprefix("/api/v1/") for _, path, _ in master.calls)


async def test_trial_gathers_its_peers_checks_its_storage_and_runs(
    harness: LauncherHarness, master: FakeMaster
) -> None:
    master.context = context(train_py=TRAIN)
    await harness.run(A, trial(harness, "python3 train.py"))
    ended = await harness.until_ended(A, timeout_s=90)
    assert ended.pods[0].exit_code == 0, harness.printed(A, "stderr")
    assert json.loads(harness.printed(A)[-1])[:5] == [7, {"lr": 0.5}, [0], ["127.0.0.1"], None]
    assert called(master) == CALLS


async def test_what_hooks_change_in_their_shell_holds_for_the_trial(
    harness: LauncherHarness, master: FakeMaster
) -> None:
    hook = "export FROM_HOOK=yes\numask 0027\n"
    master.context = context(train_py=TRAIN, **{"startup-hook.sh": hook})
    await harness.run(A, trial(harness, "python3 train.py"))
    ended = await harness.until_ended(A, timeout_s=90)
    assert ended.pods[0].exit_code == 0, harness.printed(A, "stderr")
    assert json.loads(harness.printed(A)[-1]) == [7, {"lr": 0.5}, [0], ["127.0.0.1"], "yes", 0o027]
    assert any(line.endswith("+ umask 0027") for line in harness.printed(A, "stderr"))
    assert called(master) == CALLS


async def test_a_hook_that_fails_ends_the_trial_before_it_meets_its_peers(
    harness: LauncherHarness, master: FakeMaster
) -> None:
    master.context = context(**{"startup-hook.sh": "sh -c 'exit 9'\n"})
    await harness.run(A, trial(harness, "echo not reached"))
    ended = await harness.until_ended(A, timeout_s=90)
    assert ended.pods[0].exit_code == 9, harness.printed(A, "stderr")
    assert called(master) == CALLS[:3]


async def test_a_trial_that_cannot_be_prepared_is_not_launched(harness: LauncherHarness, master: FakeMaster) -> None:
    master.context = context(**{"../outside": ""})
    await harness.run(A, trial(harness, "echo not reached"))
    ended = await harness.until_ended(A, timeout_s=90)
    assert ended.pods[0].exit_code == 1, harness.printed(A, "stderr")
    assert "expand to a parent directory" in harness.printed(A, "stderr")[-1]
    assert called(master) == CALLS[:1]


async def test_a_trial_is_prepared_although_the_master_dies_twice(harness: LauncherHarness, master: FakeMaster) -> None:
    master.context = context(train_py=TRAIN)
    master.cut = ["/acceleratorData", "/all_gather"]
    await harness.run(A, trial(harness, "python3 train.py"))
    ended = await harness.until_ended(A, timeout_s=90)
    assert ended.pods[0].exit_code == 0, harness.printed(A, "stderr")
    assert sum("the master does not answer" in line for line in harness.printed(A, "stderr")) == 2
    assert not master.cut


async def report_ready(harness: LauncherHarness, timeout_s: float = 60) -> None:
    script = (
        "printf 'odd \\377\\nServer listening on 0.0.0.0\\nmore\\n' |"
        " python3 /run/determined/check_ready_logs.py --ready-regex 'Server listening on'"
    )
    files = (TaskFile(path="check_ready_logs.py", content=load_scripts()["check_ready_logs.py"]),)
    await harness.run(A, command(script, task=A.rpartition(".")[0], files=files))
    await harness.until_ended(A, timeout_s=timeout_s)


def exit_code(harness: LauncherHarness) -> int | None:
    seen = harness.last(A)
    return None if seen is None else seen.pods[0].exit_code


async def test_readiness_is_reported_when_the_line_comes(harness: LauncherHarness, master: FakeMaster) -> None:
    await report_ready(harness)
    assert exit_code(harness) == 0, harness.printed(A, "stderr")
    assert ("POST", f"/api/v1/allocations/{A}/ready", None) in master.calls


async def test_readiness_is_reported_again_to_a_master_that_cannot_answer(
    harness: LauncherHarness, master: FakeMaster
) -> None:
    master.status_by_end = {"/ready": [503, 500]}
    await report_ready(harness)
    assert exit_code(harness) == 0, harness.printed(A, "stderr")
    assert len(master.called("/ready")) == 3
    assert sum("cannot report ready, trying again" in line for line in harness.printed(A, "stderr")) == 2


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_master_that_refuses_is_not_asked_again(
    harness: LauncherHarness, master: FakeMaster, status: int
) -> None:
    master.status_by_end = {"/ready": [status]}
    await report_ready(harness)
    assert len(master.called("/ready")) == 1
    assert exit_code(harness) == 1
    assert harness.printed(A, "stderr")[-1].startswith("ERROR: the master does not want to know")
