"""Every line a task prints reaches the log intake once, whatever is killed on the way."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest

from libs.bus import Bus, BusSettings, Message
from libs.capture.lines import encode_line
from libs.events import subjects
from libs.events.logs import LogBatch
from libs.loglines.batches import is_end_of_writer
from services.launcher.backends.process.records import holder
from tests.harness.waiting import eventually
from tests.integration.launcher.fakes import FakeIntake, serve_intake
from tests.integration.launcher.launcher_harness import POOL, LauncherHarness, command, open_harness

A = "11111111-2222-4333-8444-555555555555.1"


@pytest.fixture
def intake() -> Iterator[FakeIntake]:
    with serve_intake() as fake:
        yield fake


@pytest.fixture
async def harness(
    bus: Bus, bus_settings: BusSettings, tmp_path: Path, stub_python: str, isolation: str, intake: FakeIntake
) -> AsyncIterator[LauncherHarness]:
    settings = {"RESOLUTE_TASKS__LOG_INTAKE_URL": intake.url}
    async with open_harness(bus, bus_settings.url, tmp_path, stub_python, settings) as opened:
        yield opened


def shipper(harness: LauncherHarness) -> int | None:
    return holder(harness.pod(A) / "ship" / "ship.lock")


async def until_delivered(harness: LauncherHarness, intake: FakeIntake) -> None:
    await eventually(lambda: len(intake.ends) == 2, what=harness.launcher.log())


async def test_what_python_prints_arrives_while_it_runs(harness: LauncherHarness, intake: FakeIntake) -> None:
    await harness.run(A, command("python3", "-c", "import time; print('step 1'); time.sleep(3600)"))
    await eventually(lambda: b"step 1" in intake.printed(), what=harness.launcher.log())


async def test_lines_arrive_with_the_identity_of_the_pod(harness: LauncherHarness, intake: FakeIntake) -> None:
    await harness.run(A, command("printf 'out\\001\\377\\n'; echo err >&2; exit 2"))
    ended = await harness.until_ended(A)
    await until_delivered(harness, intake)
    assert intake.printed()[-1] == b"out\x01\xff"
    assert intake.printed("stderr")[-1] == b"err"
    assert {end.exit_code for end in intake.ends.values()} == {2}
    headers = intake.requests[0]
    assert headers["authorization"] == "Bearer session-token"
    assert headers["x-det-allocation"] == A
    assert headers["x-det-pod"] == ended.pods[0].name
    assert (headers["x-det-node"], headers["x-det-restart"]) == ("node-a", "0")
    assert headers["content-type"] == "application/msgpack"


async def test_lines_arrive_soon(harness: LauncherHarness, intake: FakeIntake) -> None:
    await harness.run(A, command("echo early; sleep 300"))
    await harness.until_running(A)
    await eventually(lambda: b"early" in intake.printed())


async def test_an_end_is_told_after_the_last_lines(harness: LauncherHarness, intake: FakeIntake) -> None:
    is_slow = iter([503])
    intake.refuse = lambda records: next(is_slow, 200) if any(b"last" in record.log for record in records) else 200
    await harness.run(A, command("echo last"))
    await harness.until_ended(A)
    assert b"last" in intake.printed()
    assert len(intake.ends) == 2


async def test_an_end_waits_little_for_an_intake_that_is_away(harness: LauncherHarness, intake: FakeIntake) -> None:
    intake.refuse = lambda _records: 503
    await harness.run(A, command("echo late"))
    await harness.until_ended(A)
    assert intake.printed() == []


async def test_delivery_goes_on_without_the_launcher(harness: LauncherHarness, intake: FakeIntake) -> None:
    intake.refuse = lambda _records: 503
    await harness.run(A, command("for i in $(seq 5000); do echo line $i; done"))
    await harness.until_ended(A)
    await eventually(lambda: shipper(harness))
    harness.launcher.kill()
    intake.refuse = lambda _records: 200
    await until_delivered(harness, intake)
    assert intake.printed()[-5000:] == [b"line %d" % number for number in range(1, 5001)]


async def test_killed_shippers_are_replaced_and_repeat_nothing_that_matters(
    harness: LauncherHarness, intake: FakeIntake
) -> None:
    shared = harness.state_dir.parent
    script = "i=0; while [ ! -e /determined_shared_fs/go ]; do i=$((i+1)); echo line $i; sleep 0.005; done"
    await harness.run(A, command(script, shared_fs_host_path=str(shared)))
    await harness.until_running(A)
    for _ in range(3):
        pid = await eventually(lambda: shipper(harness))
        assert pid is not None
        before = len(intake.printed())
        await eventually(lambda: len(intake.printed()) > before + 20)  # noqa: B023  # somewhere in the middle
        os.kill(pid, signal.SIGKILL)
        harness.launcher.restart()  # sooner than the pause after which a launcher replaces it
    (shared / "go").touch()
    await harness.until_ended(A)
    await until_delivered(harness, intake)
    lines = [line for line in intake.printed() if line.startswith(b"line ")]
    assert lines == [b"line %d" % number for number in range(1, len(lines) + 1)]
    assert len(lines) > 50


async def test_output_is_complete_when_everything_is_killed_hard(harness: LauncherHarness, intake: FakeIntake) -> None:
    await harness.run(A, command("echo before; sleep 300"))
    await harness.until_running(A)
    await eventually(lambda: b"before" in intake.printed())
    os.kill(harness.supervisor(A), signal.SIGKILL)
    await harness.until_ended(A)
    await until_delivered(harness, intake)
    assert {end.exit_code for end in intake.ends.values()} == {None}


async def test_state_is_kept_until_the_last_line_is_delivered(harness: LauncherHarness, intake: FakeIntake) -> None:
    intake.refuse = lambda _records: 503
    await harness.run(A, command("echo late"))
    await harness.until_ended(A)
    await harness.withdraw(A)
    await asyncio.sleep(0.5)  # long enough to have been removed
    assert len(harness.remains()) == 1
    intake.refuse = lambda _records: 200
    await eventually(lambda: harness.remains() == [])
    await asyncio.sleep(0.2)  # for what must not be said any more
    last = harness.last(A)
    assert last is not None
    assert last.gone
    assert intake.printed()[-1] == b"late"
    assert len(intake.ends) == 2


async def test_line_the_intake_calls_garbage_does_not_hold_up_the_others(
    harness: LauncherHarness, intake: FakeIntake
) -> None:
    intake.refuse = lambda records: 400 if any(b"poison" in record.log for record in records) else 200
    await harness.run(A, command("echo one; echo poison; echo two"))
    await harness.until_ended(A)
    await eventually(lambda: len(intake.ends) == 2)
    printed = [line for lines in intake.lines.values() for line in lines.values()]
    assert b"one" in printed
    assert b"two" in printed
    assert b"poison" not in printed


async def test_task_cannot_have_other_files_shipped_or_written(
    harness: LauncherHarness, intake: FakeIntake, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    records = encode_line(0, 1, b"secret") + encode_line(1, 1, b"secret")
    victim.write_bytes(records)
    links = " && ".join(f"ln -sf {victim} {name}" for name in ("stdout.0.log", "stderr.0.log", "stdout.1.log", "wake"))
    script = f"cd /run/determined/logs && {links} && ! mv /run/determined/logs /run/determined/other && kill -9 $PPID"
    await harness.run(A, command(script))
    await harness.until_ended(A)
    await eventually((harness.pod(A) / "ship" / "shipped").exists, what=harness.launcher.log())
    await harness.withdraw(A)
    await eventually(lambda: harness.remains() == [])
    assert victim.read_bytes() == records
    assert not [line for lines in intake.lines.values() for line in lines.values() if line == b"secret"]


async def test_how_many_lines_there_were_is_told_when_they_are_given_up(
    bus: Bus, bus_settings: BusSettings, tmp_path: Path, stub_python: str, isolation: str, intake: FakeIntake
) -> None:
    settings = {"RESOLUTE_TASKS__LOG_INTAKE_URL": intake.url, "RESOLUTE_PROCESS__LOG_DELIVERY_S": "1"}
    task = A.rpartition(".")[0]
    intake.refuse = lambda _records: 503
    async with open_harness(bus, bus_settings.url, tmp_path, stub_python, settings) as harness:
        await harness.run(A, command("seq 7; exit 3"))
        await harness.until_ended(A)
        await harness.withdraw(A)
        await eventually(lambda: harness.remains() == [], what=harness.launcher.log())
        told = await told_by_launcher(bus, task, 2)
    ends = {batch.stream.rpartition("/")[2]: batch.end_seq for batch in told}
    assert all(is_end_of_writer(batch) for batch in told)
    assert set(ends) == {"stdout", "stderr"}
    assert (ends["stdout"] or 0) >= 7, "the entrypoint prints as well"


async def told_by_launcher(bus: Bus, task: str, count: int) -> list[LogBatch]:
    """The first messages about a task on the stream of log lines."""
    found: list[LogBatch] = []

    async def take(message: Message) -> None:
        found.append(msgspec.msgpack.decode(message.data, type=LogBatch))

    reading = asyncio.create_task(
        bus.consume(
            stream=subjects.LOGS_STREAM, durable="test", filter=subjects.logs_of_launcher(POOL, task), handler=take
        )
    )
    try:
        await eventually(lambda: len(found) >= count)
    finally:
        reading.cancel()
        await asyncio.wait([reading])
    return found
