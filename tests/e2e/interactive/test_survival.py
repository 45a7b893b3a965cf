"""Each service is killed while a kernel computes, a shell is open and a TensorBoard is read: the tasks go on.

Only connections through a killed api break, and the next attempt works.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.e2e.interactive.test_tensorboards import trained
from tests.e2e.interactive.users import User
from tests.harness.installed_client import det_path, interactive_python, need_ssh
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem, running_system

pytestmark = [pytest.mark.interactive, pytest.mark.timeout(300)]

VICTIMS = ("scheduler", "launcher", "logs", "nats", "postgres", "api")
COUNT = (
    "import threading, time; counted = [0];"
    " count = lambda: [counted.__setitem__(0, n) or time.sleep(0.01) for n in range(10**6)];"
    " threading.Thread(target=count, daemon=True).start()"
)


class Session:
    """A session of a shell that stays open: it answers every line with what it has heard."""

    def __init__(self, user: User, task: str, directory: Path) -> None:
        self._process = subprocess.Popen(
            ["ssh", *user.ssh_options(task, directory), f"root@{task}", "while read line; do echo heard $line; done"],
            env=user.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def says(self, word: str) -> bool:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(f"{word}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return False
        return self._process.stdout.readline() == f"heard {word}\n"

    def close(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=30)


class Work:
    """What somebody has open: a notebook that computes, a shell, and a TensorBoard."""

    def __init__(self, user: User, directory: Path) -> None:
        self.user = user
        self._directory = directory
        experiment = trained(user)
        tasks = [
            user.start("notebook", "--config", "resources.slots=0"),
            user.start("shell", "--config", "resources.slots=0"),
            user.start("tensorboard", "--no-browser", str(experiment)),
        ]
        for task in tasks:
            user.wait_until_ready(task)
        self.notebook, self.shell, self.tensorboard = tasks
        self.kernel = user.kernel(self.notebook)
        assert self.kernel.run(COUNT) == ""
        self.session = Session(user, self.shell, directory)
        assert self.session.says("first")

    def connect_again(self) -> None:
        """With new connections, to the same kernel."""
        self.close()
        self.kernel = self.user.kernel(self.notebook, of=self.kernel)
        self.session = Session(self.user, self.shell, self._directory)

    def counted(self) -> int:
        return int(self.kernel.run("print(counted[0])"))

    def scalars(self) -> bool:
        """Whether the TensorBoard answers."""
        try:
            answer = self.user.http.get(f"/proxy/{self.tensorboard}/data/plugin/scalars/tags")
        except httpx.TransportError:
            return False
        return answer.status_code == 200 and "loss" in answer.text

    def close(self) -> None:
        self.session.close()
        self.kernel.kill()


@pytest.fixture(scope="module")
def system() -> Iterator[WholeSystem]:
    """Not the shared one: here services are killed."""
    with running_system(slots=4, python=str(interactive_python())) as started:
        yield started


@pytest.fixture(scope="module")
def work(system: WholeSystem, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Work]:
    need_ssh()
    with system.http() as http:
        work = Work(User(system, http), tmp_path_factory.mktemp("keys"))
        yield work
        work.close()


@pytest.mark.parametrize("victim", VICTIMS)
def test_interactive_work_goes_on_although_a_service_is_killed(work: Work, system: WholeSystem, victim: str) -> None:
    before = work.counted()
    assert work.scalars()
    work.kernel.begin("time.sleep(3); print('computed')")
    system.kill(victim)
    if victim != "api":
        assert work.session.says(f"during {victim}")
        assert work.kernel.answer() == "computed"
    system.wait_until_ready()
    if victim == "api":
        work.connect_again()
    wait_until(work.scalars, what="the TensorBoard answers")
    assert work.session.says(f"after {victim}")
    assert work.counted() > before
    for task in (work.notebook, work.shell, work.tensorboard):
        seen = work.user.task(task)
        assert seen.get("endTime") is None
        assert [allocation["state"] for allocation in seen["allocations"]] == ["STATE_RUNNING"]


def test_sessions_of_det_are_opened_again_while_the_api_starts(work: Work, system: WholeSystem) -> None:
    """Four that are open end with the api, and whoever tries again gets in."""
    user = work.user
    sessions = [
        subprocess.Popen(
            [str(det_path()), "shell", "open", work.shell, "sleep 0; echo opened; read line; echo heard"],
            env=user.environment,
            cwd=user.det.home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(4)
    ]
    try:
        for session in sessions:
            assert session.stdout is not None
            assert "opened\n" in session.stdout  # det itself says something first
        system.kill("api")
        for session in sessions:
            printed, _ = session.communicate("too late\n", timeout=60)
            assert "heard" not in printed
    finally:
        for session in sessions:
            session.kill()
            session.wait(timeout=30)

    def open_again(number: int) -> str:
        command = [str(det_path()), "shell", "open", work.shell, f"sleep 0; echo session {number * 7}"]

        def attempt() -> str:
            options = {"env": user.environment, "cwd": user.det.home, "timeout": 60, "text": True}
            printed = str(subprocess.run(command, capture_output=True, check=False, **options).stdout)
            return printed if "session" in printed else ""

        return wait_until(attempt, what="it is opened again")

    with ThreadPoolExecutor(4) as pool:
        for number, printed in enumerate(pool.map(open_again, range(4))):
            assert f"session {number * 7}\n" in printed
    work.connect_again()


def test_everything_ends_when_it_is_killed_afterwards(work: Work, system: WholeSystem) -> None:
    work.close()
    for kind, task in (("notebook", work.notebook), ("shell", work.shell), ("tensorboard", work.tensorboard)):
        work.user.kill(kind, task)
        assert work.user.http.get(f"/proxy/{task}/").status_code == 404
    wait_until(lambda: not any((system.layout.launcher / "allocations").iterdir()), what="nothing is left of them")
    alive = system.rows("SELECT allocation_id FROM user_sessions WHERE token_type = 'TASK' AND revoked_at IS NULL")
    assert alive == []
