"""The supervisor of one machine outlives whatever happens to its files, and is found with all that it runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy import cli, restarting
from deploy import process_records as records
from deploy.local.layout import Layout, Options
from deploy.local.supervision import processes
from deploy.operations.doctor.services import check_services
from tests.harness.processes import REPOSITORY
from tests.harness.waiting import wait_until

NAME = "sleeper"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path / "state")
    made.create()
    entry = {
        "name": NAME,
        "argv": [sys.executable, "-c", "import time; time.sleep(600)", str(made.root)],
        "cwd": "/",
        "log": str(made.logs / f"{NAME}.log"),
    }
    made.plan_file.write_text(json.dumps([entry]))
    return made


def start(layout: Layout) -> subprocess.Popen[bytes]:
    with (layout.logs / "supervisor.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, *processes.supervisor_arguments(layout)], cwd=REPOSITORY, stdout=log, stderr=log
        )


@pytest.fixture
def supervised(layout: Layout) -> Iterator[Layout]:
    yield layout
    for name in (processes.SUPERVISOR, NAME):
        processes.end(layout, name)


def pid(layout: Layout, name: str = NAME) -> int | None:
    found = processes.find(layout, name)
    return None if found is None else found.pid


def said(layout: Layout) -> str:
    return (layout.logs / "supervisor.log").read_text()


def test_what_cannot_be_recorded_runs_and_is_found_nevertheless(supervised: Layout) -> None:
    in_the_way = supervised.record(NAME)
    in_the_way.mkdir()
    supervisor = start(supervised)
    first = wait_until(lambda: pid(supervised), what="it runs without a record")
    assert "the record of sleeper failed" in said(supervised)
    os.kill(first, signal.SIGKILL)
    second = wait_until(lambda: (now := pid(supervised)) != first and now, what="it is started anew")
    assert pid(supervised, processes.SUPERVISOR) == supervisor.pid
    in_the_way.rmdir()
    wait_until(lambda: records.read(in_the_way), what="the record is written as soon as it can be")
    found = processes.find(supervised, NAME)
    assert found is not None
    assert (found.pid, found.restarts, supervisor.poll()) == (second, 1, None)


def test_services_get_what_they_need_by_name_and_no_file_has_the_rest(
    supervised: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "key-of-a-person")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "key-of-storage")
    monkeypatch.setenv("RESOLUTE_SOMETHING", "setting")
    start(supervised)
    found = wait_until(lambda: pid(supervised), what="it runs")
    given = Path(f"/proc/{found}/environ").read_bytes().split(b"\0")
    assert b"RESOLUTE_SOMETHING=setting" in given
    assert not [each for each in given if b"key-of" in each]
    kept = [path for path in supervised.root.rglob("*") if path.is_file()]
    assert supervised.plan_file in kept
    assert not [path for path in kept if b"key-of" in path.read_bytes()]


def test_a_service_that_cannot_be_started_is_tried_again(supervised: Layout) -> None:
    plan = json.loads(supervised.plan_file.read_text())
    program = supervised.root / "program"
    plan[0]["argv"][0] = str(program)
    supervised.plan_file.write_text(json.dumps(plan))
    supervisor = start(supervised)
    wait_until(lambda: "No such file or directory" in said(supervised), what="the failure is said")
    program.symlink_to(sys.executable)
    wait_until(lambda: pid(supervised), what="it is started")
    assert supervisor.poll() is None


def test_what_a_killed_supervisor_left_is_found_by_its_record_or_without(supervised: Layout) -> None:
    supervisor = start(supervised)
    left = wait_until(lambda: pid(supervised), what="it runs")
    supervisor.kill()
    supervisor.wait()
    assert pid(supervised, processes.SUPERVISOR) is None
    assert pid(supervised) == left
    supervised.record(NAME).write_bytes(b"")  # as a full disk leaves a file that was written the simple way
    assert pid(supervised) == left
    assert processes.end(supervised, NAME)
    assert pid(supervised) is None


def test_a_service_that_ends_again_and_again_is_named_by_status_and_doctor(
    supervised: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    planned = json.loads(supervised.plan_file.read_text())
    planned[0]["argv"] = [sys.executable, "-c", "raise SystemExit('Address already in use')", str(supervised.root)]
    supervised.plan_file.write_text(json.dumps(planned))
    options(supervised).save(supervised)
    processes.write_record(supervised, processes.SUPERVISOR, start(supervised).pid)
    wait_until(lambda: restarting.restarting(supervised.root) == {NAME: "Address already in use"}, what="it is noticed")
    with pytest.raises(SystemExit) as ended:
        cli.main(["--state", str(supervised.root), "status"])
    assert ended.value.code == 3
    sentence = f"{NAME} restarts again and again; the last line of its log: Address already in use"
    assert sentence in capsys.readouterr().out
    assert [(each.level, each.says) for each in check_services(supervised.root)] == [("problem", sentence)]


def options(layout: Layout) -> Options:
    return Options(
        api_port=1,
        nats_port=2,
        postgres_port=3,
        logs_port=4,
        postgres_data=str(layout.root),
        postgres_password="",
        python=sys.executable,
        slots=1,
    )
