"""What runs inside a pod, run here: the init container's script, and the builtin shipper. Needs no cluster."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import pytest

from libs.events.orders import Order, TaskFile
from services.launcher.backends.kubernetes.manifests.task_objects import Manifests, manifests
from services.launcher.backends.kubernetes.manifests.traits import PoolTraits
from services.launcher.backends.kubernetes.settings import ShipperSettings
from services.launcher.files import load_scripts
from services.launcher.files.ship import Line, gzip, pack
from tests.harness.waiting import PATIENCE_S, wait_until
from tests.integration.launcher.backends.kubernetes.launcher_harness import CLUSTER_ID, POOL, TASKS, task
from tests.integration.launcher.fakes import FakeIntake, serve_intake, serve_master


def made(kind: Literal["builtin", "fluent-bit"] = "builtin", **fields: object) -> Manifests:
    order = Order(allocation="t.1", pool=POOL, desired="run", spec=task(**fields))
    shipper = ShipperSettings(kind=kind)
    traits = PoolTraits(
        pool=POOL, cluster_id=CLUSTER_ID, namespace="ns", tasks=TASKS, scripts=load_scripts(), shipper=shipper
    )
    return manifests(order, traits)


def unpack(found: Manifests, directory: Path) -> Path:
    """Do what kubelet and the init container do; returns what becomes ``/run/determined``."""
    source, script, target = directory / "src", directory / "script", directory / "dst"
    source.mkdir()
    target.mkdir()
    for data in (found.config_map["binaryData"], found.secrets[0]["data"]):
        for key, value in data.items():
            if key.endswith(".tar.gz"):
                (source / key).write_bytes(base64.b64decode(value))
    init = found.job["spec"]["template"]["spec"]["initContainers"][-1]
    name = init["command"][0].rsplit("/", 1)[1]
    script.write_bytes(base64.b64decode(found.config_map["binaryData"][name]))
    script.chmod(0o555)
    subprocess.run([str(script), init["args"][0], str(source), str(target)], check=True, cwd=directory)
    return target / "determined"


def test_the_init_container_unpacks_what_the_task_finds(tmp_path: Path) -> None:
    files = (TaskFile(path="checkpoint_gc/storage_config.json", content=b"{}"),)
    run = unpack(made(task_type="CHECKPOINT_GC", files=files), tmp_path)
    secret = run / "checkpoint_gc" / "storage_config.json"
    assert secret.read_bytes() == b"{}"
    assert secret.stat().st_mode & 0o777 == 0o600
    assert run.stat().st_mode & 0o777 == 0o700
    assert (run / "workdir").is_dir()
    assert (run / "capture.py").stat().st_mode & 0o777 == 0o755


@pytest.fixture
def intake() -> object:
    with serve_intake() as served:
        yield served


def shipping(
    run: Path,
    url: str,
    *command: str,
    script: str = "capture_and_ship.py",
    when_full: str = "block",
    before: tuple[str, ...] = (),
    outage_wait_s: float = 0,
    **environ: str,
) -> subprocess.Popen[bytes]:
    """``before`` goes before the flags of the wrapper itself."""
    logs = run / "logs"
    logs.mkdir(exist_ok=True)
    flags = (*before, "--dir", str(logs), "--cap-bytes", str(1 << 20), "--when-full", when_full, "--")
    return subprocess.Popen(
        [
            sys.executable,
            "-I",
            "-S",
            str(run / script),
            "--intake",
            url,
            "--outage-wait-s",
            str(outage_wait_s),
            *flags,
            *command,
        ],
        env={
            "PATH": os.environ["PATH"],
            "DET_SESSION_TOKEN": "session-token",
            "DET_ALLOCATION_ID": "t.1",
            "DET_CONTAINER_ID": "pod-a",
            "DET_AGENT_ID": "node-a",
            **environ,
        },
        start_new_session=True,
    )


def test_builtin_shipper_delivers_everything_before_the_container_ends(tmp_path: Path, intake: FakeIntake) -> None:
    run = unpack(made(), tmp_path)
    process = shipping(run, intake.url, "sh", "-c", "seq 1 2000; echo last; exit 3")
    assert process.wait(timeout=60) == 3
    printed = intake.printed()
    assert (len(printed), printed[-1]) == (2001, b"last")
    assert intake.ends[("pod-a", "stdout")].exit_code == 3
    headers = intake.requests[0]
    assert headers["authorization"] == "Bearer session-token"
    assert (headers["x-det-allocation"], headers["x-det-node"]) == ("t.1", "node-a")


def test_builtin_shipper_gives_up_on_an_intake_that_stays_away(tmp_path: Path) -> None:
    run = unpack(made(), tmp_path)
    began = time.monotonic()
    process = shipping(run, "http://127.0.0.1:9", "true", DET_LOG_WAIT_TIME="1")
    assert process.wait(timeout=60) == 0
    assert 1 <= time.monotonic() - began < 30
    os.killpg(process.pid, 0) if process.poll() is None else None
    _end_shippers(run)


def capture_has_ended(run: Path) -> bool:
    path = run / "logs" / "stdout.0.log"
    return path.exists() and b";eos" in path.read_bytes()


SCRIPTS = {"builtin": "capture_and_ship.py", "fluent-bit": "capture_until_stored.py"}


@pytest.mark.parametrize("kind", ["builtin", "fluent-bit"])
def test_an_intake_that_is_away_is_waited_for(
    tmp_path: Path, intake: FakeIntake, kind: Literal["builtin", "fluent-bit"]
) -> None:
    run = unpack(made(kind), tmp_path)
    away = 503
    intake.refuse = lambda _records: away or 200
    intake.tell = lambda _pod: away or 200
    process = shipping(run, intake.url, "echo", "x", script=SCRIPTS[kind], outage_wait_s=600, DET_LOG_WAIT_TIME="1")
    wait_until(lambda: capture_has_ended(run))
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=3)
    away = 0
    if kind == "fluent-bit":
        deliver(run, intake)
    assert process.wait(timeout=PATIENCE_S) == 0
    assert intake.printed() == [b"x"]


@pytest.mark.parametrize("kind", ["builtin", "fluent-bit"])
def test_a_task_that_is_stopped_does_not_wait_for_an_intake_that_is_away(
    tmp_path: Path, kind: Literal["builtin", "fluent-bit"]
) -> None:
    run = unpack(made(kind), tmp_path)
    away = "http://127.0.0.1:9"
    process = shipping(run, away, "true", script=SCRIPTS[kind], outage_wait_s=600, DET_LOG_WAIT_TIME="1")
    wait_until(lambda: capture_has_ended(run))
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=PATIENCE_S) == 0
    _end_shippers(run)


@pytest.mark.parametrize("kind", ["builtin", "fluent-bit"])
def test_slots_that_another_job_waits_for_are_not_held_for_an_intake_that_is_away(
    tmp_path: Path, kind: Literal["builtin", "fluent-bit"]
) -> None:
    run = unpack(made(kind), tmp_path)
    with serve_master() as master:
        master.slots_are_wanted = True
        process = shipping(
            run,
            "http://127.0.0.1:9",
            "true",
            script=SCRIPTS[kind],
            outage_wait_s=600,
            DET_LOG_WAIT_TIME="1",
            DET_MASTER=master.url,
        )
        assert process.wait(timeout=PATIENCE_S) == 0
    _end_shippers(run)


def test_builtin_shipper_that_dies_is_started_again(tmp_path: Path, intake: FakeIntake) -> None:
    run = unpack(made(), tmp_path)
    script = f"echo one; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo two"
    process = shipping(run, intake.url, "sh", "-c", script)
    lock = run / "logs" / ".ship" / "ship.lock"
    shipper = wait_until(lambda: lock.exists() and lock.read_text().strip())
    os.kill(int(shipper), signal.SIGKILL)
    (tmp_path / "go").touch()
    assert process.wait(timeout=60) == 0
    assert intake.printed() == [b"one", b"two"]


def test_a_signal_reaches_the_task_and_its_last_words_the_intake(tmp_path: Path, intake: FakeIntake) -> None:
    run = unpack(made(), tmp_path)
    script = "trap 'echo asked; exit 5' TERM; echo begun; while :; do sleep 0.05; done"
    process = shipping(run, intake.url, "sh", "-c", script)
    wait_until(lambda: b"begun" in intake.printed())
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 5
    assert intake.printed() == [b"begun", b"asked"]


def beside_fluent_bit(
    run: Path, url: str, *command: str, when_full: str = "block", **environ: str
) -> subprocess.Popen[bytes]:
    return shipping(run, url, *command, script="capture_until_stored.py", when_full=when_full, **environ)


def deliver(run: Path, intake: FakeIntake) -> None:
    """Do the work of the sidecar once, for everything that is written."""
    for path in sorted((run / "logs").glob("std*.log")):
        try:
            records = path.read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:  # not needed any more
            continue
        body = b"".join(pack(Line(str(path), 0, record), 0) for record in records)
        assert intake.take({"x-det-pod": "pod-a"}, gzip(body)) == 200


def test_the_container_ends_only_when_the_intake_has_what_the_task_printed(tmp_path: Path, intake: FakeIntake) -> None:
    run = unpack(made("fluent-bit"), tmp_path)
    process = beside_fluent_bit(run, intake.url, "sh", "-c", "seq 1 2000; echo oops >&2; exit 3")
    wait_until(lambda: len(intake.asked) > 1)
    assert process.poll() is None
    deliver(run, intake)
    assert process.wait(timeout=PATIENCE_S) == 3
    assert len(intake.printed()) == 2000
    assert intake.asked[-1]["authorization"] == "Bearer session-token"


def test_only_files_of_which_every_line_is_stored_are_deleted(tmp_path: Path, intake: FakeIntake) -> None:
    run = unpack(made("fluent-bit"), tmp_path)
    process = beside_fluent_bit(run, intake.url, "sh", "-c", "seq -f %0200.0f 12000; echo last", when_full="stored")
    wait_until(lambda: intake.asked)  # it is full, and waits
    assert process.poll() is None
    assert (run / "logs" / "stdout.0.log").exists()
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None:
        assert time.monotonic() < deadline
        deliver(run, intake)
    assert process.returncode == 0
    assert intake.printed() == [b"%0200d" % number for number in range(1, 12001)] + [b"last"]
    assert not (run / "logs" / "stdout.0.log").exists()


def test_an_end_is_not_put_off_for_longer_than_the_log_may_take(tmp_path: Path, intake: FakeIntake) -> None:
    run = unpack(made("fluent-bit"), tmp_path)
    began = time.monotonic()
    assert beside_fluent_bit(run, intake.url, "true", DET_LOG_WAIT_TIME="1").wait(timeout=PATIENCE_S) == 0
    assert beside_fluent_bit(run, "http://127.0.0.1:9", "true", DET_LOG_WAIT_TIME="1").wait(timeout=PATIENCE_S) == 0
    assert time.monotonic() - began >= 2


@pytest.mark.parametrize("status", [401, 404])
def test_an_intake_that_cannot_tell_is_asked_once(tmp_path: Path, intake: FakeIntake, status: int) -> None:
    intake.tell = lambda _pod: status
    run = unpack(made("fluent-bit"), tmp_path)
    assert beside_fluent_bit(run, intake.url, "true", DET_LOG_WAIT_TIME="3600").wait(timeout=PATIENCE_S) == 0
    assert len(intake.asked) == 1


def test_an_intake_that_does_not_know_yet_is_asked_again(tmp_path: Path, intake: FakeIntake) -> None:
    answers = iter((503, 503))
    intake.tell = lambda _pod: next(answers, 200)
    run = unpack(made("fluent-bit"), tmp_path)
    process = beside_fluent_bit(run, intake.url, "true")
    wait_until(lambda: len(intake.asked) > 1)
    deliver(run, intake)
    assert process.wait(timeout=PATIENCE_S) == 0


def test_what_a_sidecar_that_was_asked_to_end_does_not_read_is_delivered(tmp_path: Path, intake: FakeIntake) -> None:
    run = unpack(made("fluent-bit"), tmp_path)
    task = "trap 'echo asked; exit 5' TERM; seq -f %0200.0f 2000; echo begun; while :; do sleep 0.05; done"
    process = shipping(
        run,
        intake.url,
        "sh",
        "-c",
        task,
        script="capture_until_stored.py",
        before=("--sidecar-ends-with-task",),
    )
    wait_until(lambda: any(b"begun" in path.read_bytes() for path in (run / "logs").glob("stdout.*.log")))
    deliver(run, intake)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=PATIENCE_S) == 5
    assert intake.printed() == [b"%0200d" % number for number in range(1, 2001)] + [b"begun", b"asked"]
    assert len(intake.ends) == 2


def _end_shippers(run: Path) -> None:
    """What a container's end does to everything in it."""
    if not (run / "logs" / ".ship").exists():
        return
    (run / "logs" / ".ship" / "shipped").touch()
    lock = run / "logs" / ".ship" / "ship.lock"
    if lock.exists() and lock.read_text().strip():
        try:
            os.kill(int(lock.read_text()), signal.SIGKILL)
        except ProcessLookupError:
            return
