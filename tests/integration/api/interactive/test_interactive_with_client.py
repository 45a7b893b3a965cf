"""``det notebook | tensorboard | shell | command``, apart from what launches and opens them."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from libs.events.observations import ObservedPod
from tests.builders import insert_workspace
from tests.harness.api import ApiProcess
from tests.harness.det import Det
from tests.integration.api.interactive.conftest import Columns, Task
from tests.integration.api.world import World

KINDS = {"NOTEBOOK": "notebook", "TENSORBOARD": "tensorboard", "SHELL": "shell", "COMMAND": "command"}
RUNNING = {
    "state": "RUNNING",
    "assigned_at": datetime(2030, 1, 1, tzinfo=UTC),
    "pods": msgspec.to_builtins([ObservedPod(name="p", state="RUNNING", node="a")]),
}


@pytest.fixture(scope="module")
def somebody(api: ApiProcess, tmp_path_factory: pytest.TempPathFactory) -> Det:
    """The owner of these tasks: ``determined``."""
    return Det(url=api.url, home=tmp_path_factory.mktemp("somebody"))


def table(det: Det, *arguments: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(det(*arguments, "--csv").out)))


@pytest.mark.parametrize("task_type", KINDS)
def test_every_kind(somebody: Det, task: Task, columns_of: Columns, task_type: str) -> None:
    noun = KINDS[task_type]
    runs = task(task_type, description="the one", allocation=RUNNING, experiment_ids=[1])
    waits = task(task_type, experiment_ids=[1])
    mine = {row["id"]: row for row in table(somebody, noun, "list")}
    shown = [mine[runs][name] for name in ("description", "state", "exitStatus", "workspaceName")]
    assert shown == ["the one", "RUNNING", "", "Uncategorized"]
    assert mine[waits]["state"] == "QUEUED"
    assert "Set priority" in somebody(noun, "set", "priority", waits[:12], "7").out
    assert "priority: 7" in somebody(noun, "config", waits[:12]).out
    somebody(noun, "kill", runs[:12], waits)
    assert [columns_of(killed)["kill_reason"] for killed in (runs, waits)] == ["user requested kill"] * 2


def test_whose_they_are_and_which_do_not_exist(det: Det, somebody: Det, task: Task) -> None:
    ident = task("NOTEBOOK", description="somebody's")
    assert ident in somebody("notebook", "list", "-q").out.splitlines()
    assert ident not in det("notebook", "list", "-q").out.splitlines()
    assert ident in det("notebook", "list", "-q", "--all").out.splitlines()
    assert "somebody's" in {row["Name"] for row in table(somebody, "task", "list")}
    jobs = {row["Job Name"]: row for row in table(somebody, "job", "list", "--limit", "1000")}
    assert jobs["somebody's"]["Type"] == "TYPE_NOTEBOOK"
    assert "priority must be between 1 and 99" in _said(somebody("notebook", "set", "priority", ident, "100"))
    nobody = "00000000-0000-4000-8000-000000000000"
    assert f"notebook '{nobody}' not found" in _said(somebody.fails("notebook", "config", nobody))
    assert f"notebook '{nobody}' not found" in _said(somebody.fails("notebook", "kill", nobody))


def test_a_command_is_described(somebody: Det, task: Task) -> None:
    ident = task("COMMAND", description="the one", allocation=RUNNING)
    (described,) = table(somebody, "command", "describe", ident[:12])
    assert (described["id"], described["state"]) == (ident, "RUNNING")
    assert somebody("cmd", "describe", ident, "--json").json()["id"] == ident
    assert len(somebody("cmd", "describe", ident).out.splitlines()) == 3


def test_lists_are_sorted_and_of_a_workspace(det: Det, task: Task, world: World) -> None:
    home = {"workspace_id": world.in_database(lambda tx: insert_workspace(tx, name="home")), "owner_id": 1}
    first = task("COMMAND", description="b", task={**home, "start_time": datetime(2030, 1, 1, tzinfo=UTC)})
    second = task("COMMAND", description="a", task={**home, "start_time": datetime(2030, 1, 2, tzinfo=UTC)})

    def listed(*arguments: str) -> list[str]:
        return [row["id"] for row in table(det, "command", "list", "-w", "home", *arguments)]

    assert listed() == [first, second]
    assert listed("--sort-by", "description") == [second, first]
    assert listed("--order-by", "desc") == [second, first]
    assert "not found" in _said(det.fails("command", "list", "-w", "no such workspace"))


def _said(ended: Any) -> str:
    return f"{ended.out}{ended.err}"
