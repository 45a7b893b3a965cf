"""Nothing is left of interactive tasks of all kinds, however they ended."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from deploy.local.configuration.status_ports import status_url
from tests.e2e.interactive.test_tensorboards import losses_of, trained
from tests.e2e.interactive.users import User
from tests.e2e.test_generic_tasks import create
from tests.e2e.test_growth import SPARE_DESCRIPTORS, at_rest, left_behind
from tests.harness.installed_client import interactive_python, need_ssh
from tests.harness.whole_system import WholeSystem, running_system

pytestmark = [pytest.mark.interactive, pytest.mark.timeout(900)]

AT_ONCE = 6
ONE_TOO_MANY = SPARE_DESCRIPTORS + 1
"""As many tasks that one descriptor of each would be noticed."""
NO_SLOTS = ("--config", "resources.slots=0")
KINDS = ("command", "notebook", "generic", "shell", "command", "generic", "tensorboard", "command")
"""In eight, so that of 24 tasks each of these ends in each of three ways."""
KILLED = 2
APART = "setsid sleep 1000 < /dev/null > /dev/null 2>&1 &"
"""A process that has left the session of whoever started it."""


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


def proxied_connections_of(system: WholeSystem) -> float:
    """As the api counts those that are open; of a few the descriptors would not tell."""
    lines = httpx.get(status_url(system.layout, "api", "metrics"), timeout=30).text.splitlines()
    [value] = [line.split()[1] for line in lines if line.startswith("resolute_api_proxy_connections ")]
    return float(value)


def live_a_life(user: User, number: int, experiment: int) -> None:
    """Of every third task one ends well, or is killed while it is used; one fails; and one is killed at once."""
    kind = KINDS[number % len(KINDS)]
    match kind, number % 3:
        case "generic", way:
            live_as_generic(user, way)
        case "command", 0:
            user.exit_status(kind, user.start(kind, *NO_SLOTS, "true"))
        case "command", 1:
            assert "exit code 3" in user.exit_status(kind, user.start(kind, *NO_SLOTS, "exit 3"))
        case "command", _:
            user.kill(kind, user.start(kind, *NO_SLOTS, f"{APART} sleep 1000"))
        case _, 0:
            task = user.open_when_ready(kind, *what_of(kind, experiment))
            with in_use(user, kind, task):
                user.kill(kind, task)
        case _, 1:  # what it needs is not there
            without = ("--config", "environment.environment_variables=[DET_PYTHON_EXECUTABLE=none]")
            task = user.start(kind, *what_of(kind, experiment), *without)
            assert "needs Python" in user.exit_status(kind, task)
        case _, _:
            user.kill(kind, user.start(kind, *what_of(kind, experiment)))


def live_as_generic(user: User, way: int) -> None:
    entrypoint = ("true", "exit 3", f"{APART} sleep 1000")[way]
    task, _ = create(user.det, {"entrypoint": entrypoint})
    if way == KILLED:
        user.det("task", "kill", task)
    user.wait_until_ended(task)
    assert user.task(task)["taskState"] == f"GENERIC_TASK_STATE_{('COMPLETED', 'ERROR', 'CANCELED')[way]}"


def what_of(kind: str, experiment: int) -> tuple[str, ...]:
    return (str(experiment),) if kind == "tensorboard" else NO_SLOTS


@contextmanager
def in_use(user: User, kind: str, task: str) -> Iterator[None]:
    """Somebody has a kernel and a websocket to it, has left something running in a shell, or looks at a chart."""
    match kind:
        case "notebook":
            kernel = user.kernel(task)
            assert kernel.run("print(1)") == "1"
            yield
            kernel.kill()
        case "shell":
            user.in_shell(task, APART)
            yield
        case _:
            assert losses_of(user, task)
            yield


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
    assert (processes_of(system), mounts_of(system), proxied_connections_of(system)) == (0, [], 0)
    assert system.rows("SELECT 1 FROM user_sessions WHERE token_type = 'TASK' AND revoked_at IS NULL") == []
    assert system.rows("SELECT 1 FROM allocation_sessions WHERE revoked_at IS NULL") == []
