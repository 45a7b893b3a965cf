"""Everything also works for a user without any rights, in user namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import libs
from libs.events.observations import AllocationObserved
from tests.integration.launcher.launcher_harness import payloads

NOBODY = 65534
REPOSITORY = Path(libs.__path__[0]).resolve().parent

SCRIPT = """
import asyncio, os, sys
from pathlib import Path
import msgspec
from libs.clock import SystemClock
from libs.events.orders import BindMount, Order
from services.launcher.backends.process.wiring import open_process_backend
from services.launcher.backends.process.settings import ProcessSettings
from services.launcher.container.settings import TaskSettings
from services.launcher.task_lines import Lines
from tests.integration.launcher.launcher_harness import command, make_python

A = "11111111-2222-4333-8444-555555555555.1"
script = (
    "sleep 300 & mkdir -m 0 shut; echo > /tmp/resolute-mine; "
    "id -u; cat given/in; touch given/x || echo read-only; exit 4"
)

async def main(directory):
    (directory / "data").mkdir()
    (directory / "data" / "in").write_text("input\\n")
    settings = ProcessSettings(state_dir=str(directory / "state"), python=make_python(directory), slots=1)
    mount = BindMount(host_path=str(directory / "data"), container_path="given", read_only=True)
    order = Order(allocation=A, pool="local", desired="run", spec=command(script, bind_mounts=(mount,)))
    async with open_process_backend(
        pool="local", settings=settings, tasks=TaskSettings(), clock=SystemClock(), environ=dict(os.environ),
        lines=Lines(),
    ) as backend:
        await backend.start(order)
        async for allocation in backend.changes():
            seen = await backend.observe(allocation)
            if seen.gone:
                break
        allocations = directory / "state" / "allocations"
        output = next(allocations.glob("*/pods/0/logs/stdout.0.log")).read_text()
        await backend.remove(A)
        assert not list(allocations.iterdir())
        (directory / "output").write_text(output)
        (directory / "seen").write_bytes(msgspec.json.encode(seen))

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory of an ordinary user: this one's, or nobody's."""
    path = Path(tempfile.mkdtemp(prefix="resolute-user-"))
    path.chmod(0o755)
    if os.getuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    yield path
    shutil.rmtree(path)


def ordinary_python() -> list[str]:
    """Command prefix that runs Python, with our packages, as somebody without rights; skips when there is none."""
    if os.getuid() != 0:
        return [sys.executable]
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv (util-linux) to become an ordinary user")
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (os.path.realpath(sys.executable), f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        tried = subprocess.run([*become, "sh", "-c", f"exec {python} -c pass"], capture_output=True, check=False)
        if tried.returncode == 0:
            return [*become, python]
    pytest.skip(f"needs a {version} that ordinary users may execute")


def test_task_of_an_ordinary_user(directory: Path) -> None:
    command = ordinary_python()
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{REPOSITORY}:{packages}", "HOME": str(directory)}
    done = subprocess.run(
        [*command, "-c", SCRIPT, str(directory)],
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=directory,
        capture_output=True,
        check=False,
        timeout=60,
    )
    if b"Tasks cannot be isolated" in done.stderr:
        pytest.skip(done.stderr.decode())
    assert done.returncode == 0, done.stderr.decode()
    seen = msgspec.json.decode((directory / "seen").read_bytes(), type=AllocationObserved)
    printed = payloads((directory / "output").read_bytes())
    assert (seen.pods[0].exit_code, seen.pods[0].failure) == (4, "FAILED")
    assert printed[-3:] == [str(NOBODY if os.getuid() == 0 else os.getuid()), "input", "read-only"]
    assert not Path("/tmp/resolute-mine").exists()
