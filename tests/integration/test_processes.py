"""Processes that tests start end with them, and can be killed and started again in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.local.log_files import open_log
from deploy.local.servers.ports import accepts_connections, free_port
from deploy.local.servers.process import ProcessFailed
from tests.harness import ServiceProcess
from tests.harness.processes import REPOSITORY, answers_http
from tests.harness.waiting import wait_until


def web_server(tmp_path: Path) -> tuple[ServiceProcess, int]:
    port = free_port()
    ready = answers_http(f"http://127.0.0.1:{port}/")
    arguments = ("--bind", "127.0.0.1", str(port))
    return ServiceProcess("http.server", *arguments, log_path=tmp_path / "web.log", is_ready=ready), port


def test_service_is_ready_survives_restart_and_ends(tmp_path: Path) -> None:
    service, port = web_server(tmp_path)
    with service:
        first = service.pid
        service.restart()
        assert service.pid != first
        assert accepts_connections(port)
        assert "GET / HTTP" in service.log()
    assert not accepts_connections(port)


def test_logs_are_not_for_everybody(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch(mode=0o644)  # as an older release left it
    service = ServiceProcess("http.server", "--nonsense", log_path=path, is_ready=lambda: False)
    before = os.umask(0)
    try:
        with pytest.raises(ProcessFailed):
            service.start()
        with open_log(tmp_path / "new") as log:
            log.write(b"line\n")
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (path, tmp_path / "new")] == [0o640, 0o640]


def test_service_that_ends_early_shows_its_log(tmp_path: Path) -> None:
    service = ServiceProcess("http.server", "--nonsense", log_path=tmp_path / "log", is_ready=lambda: False)
    with pytest.raises(ProcessFailed, match="--nonsense"):
        service.start()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux offers this")
@pytest.mark.parametrize("argv", [("http.server", "0"), ("services.launcher.main",)], ids=["started", "forked"])
def test_service_dies_with_killed_tests(argv: tuple[str, ...], tmp_path: Path) -> None:
    # A launcher waits for a bus that nobody serves.
    env = {"RESOLUTE_POOL": "default", "RESOLUTE_BUS__URL": "nats://127.0.0.1:1"}
    script = (
        "from tests.harness import ServiceProcess; from pathlib import Path; import time;"
        f"s = ServiceProcess(*{argv!r}, log_path=Path({str(tmp_path / 'log')!r}), env={env!r}); s.start();"
        "print(s.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=REPOSITORY, stdout=subprocess.PIPE)
    try:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        os.kill(child, 0)
    finally:
        parent.kill()
        parent.wait()
        if parent.stdout is not None:
            parent.stdout.close()
    try:
        wait_until(lambda: not is_alive(child), what="it has died too")
    except AssertionError:
        os.kill(child, signal.SIGKILL)
        raise


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that nobody has waited for yet is dead all the same."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
