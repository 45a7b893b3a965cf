"""Nothing is left of interactive tasks of all kinds, however they ended."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.interactive.test_tensorboards import trained
from tests.e2e.interactive.users import User
from tests.e2e.test_growth import SPARE_DESCRIPTORS, at_rest, left_behind
from tests.harness.installed_client import interactive_python, need_ssh
from tests.harness.whole_system import WholeSystem, running_system

pytestmark = [pytest.mark.interactive, pytest.mark.timeout(900)]

AT_ONCE = 6
ONE_TOO_MANY = SPARE_DESCRIPTORS + 1
"""As many tasks that one descriptor of each would be noticed."""
NO_SLOTS = ("--config", "resources.slots=0")


@pytest.fixture(scope="module")
def system() -> Iterator[WholeSystem]:
    """Not the shared one, in which other tests leave things behind."""
    with running_system(slots=4, python=str(interactive_python())) as started:
        yield started


def processes_of(system: WholeSystem) -> int:
    """How many processes there are of tasks, which have their allocation in their environment, and around them: those
    who supervise them and ship their output are told where it is."""
    found = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
            arguments = (process / "cmdline").read_bytes()
        except OSError:
            continue  # it is over
        is_task = f"DET_MASTER={system.url}".encode() in variables and any(
            variable.startswith(b"DET_ALLOCATION_ID=") for variable in variables
        )
        found += is_task or str(system.layout.launcher / "allocations").encode() in arguments
    return found


def mounts_of(system: WholeSystem) -> list[str]:
    return [line for line in Path("/proc/mounts").read_text().splitlines() if str(system.layout.root) in line]


def live_a_life(user: User, number: int, experiment: int) -> None:
    """Of every third task one ends well, one fails, and one is killed, half of them before they are ready."""
    kind = ("command", "notebook", "command", "shell", "command", "command", "tensorboard", "command")[number % 8]
    match kind, number % 3:
        case "command", 0:
            user.exit_status(kind, user.start(kind, *NO_SLOTS, "true"))
        case "command", 1:
            assert "exit code 3" in user.exit_status(kind, user.start(kind, *NO_SLOTS, "exit 3"))
        case "command", _:
            user.kill(kind, user.start(kind, *NO_SLOTS, "sleep 1000 & sleep 1000"))
        case _, 1:  # what it needs is not there
            argument = (str(experiment),) if kind == "tensorboard" else NO_SLOTS
            task = user.start(
                kind, *argument, "--config", "environment.environment_variables=[DET_PYTHON_EXECUTABLE=none]"
            )
            assert "needs Python" in user.exit_status(kind, task)
        case _, _:
            task = user.start(kind, *((str(experiment),) if kind == "tensorboard" else NO_SLOTS))
            if number % 2 and kind != "tensorboard":
                user.wait_until_ready(task)
            user.kill(kind, task)


@pytest.mark.parametrize(
    "count", [ONE_TOO_MANY, pytest.param(100, marks=[pytest.mark.chaos, pytest.mark.long])], ids=str
)
def test_tasks_of_all_kinds_leave_nothing(system: WholeSystem, count: int) -> None:
    need_ssh()
    with system.http() as http:
        user = User(system, http)
        experiment = trained(user)
        assert processes_of(system) == 0
        seen = user.open_when_ready("shell", *NO_SLOTS)
        assert processes_of(system) >= 3, "of a shell there are a supervisor, a shipper and sshd"
        user.kill("shell", seen)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda number: live_a_life(user, number, experiment), range(AT_ONCE)))
            before = at_rest(system)
            list(pool.map(lambda number: live_a_life(user, number, experiment), range(count)))
    assert left_behind(system, before) == {}
    assert (processes_of(system), mounts_of(system)) == (0, [])
    assert system.rows("SELECT 1 FROM user_sessions WHERE token_type = 'TASK' AND revoked_at IS NULL") == []
    assert system.rows("SELECT 1 FROM allocation_sessions WHERE revoked_at IS NULL") == []
