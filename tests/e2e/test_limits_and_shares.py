"""Limits and weights as administrators set them and users meet them: by `resolute` and `det` alone."""

from __future__ import annotations

import re

import pytest

from tests.harness.client import Client
from tests.harness.resolute import Resolute
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem

OF_USER = ("user", "determined")
HELD = "select 1 from allocations where released_at is null"
STARTED = "select 1 from allocations where task_id = $1 and assigned_at is not null"
WAITING = "select wait_reason from allocations where task_id = $1 and wait_reason <> ''"


@pytest.fixture(autouse=True)
def _as_administrator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ``resolute``; ``det`` has a login of its own."""
    monkeypatch.setenv("DET_USER", "admin")
    monkeypatch.setenv("DET_PASS", "")


def test_who_has_reached_a_limit_is_told_and_goes_on_when_it_is_removed(whole_system: WholeSystem, det: Client) -> None:
    resolute, master = Resolute(whole_system.layout.root), ("--master", whole_system.url)
    wait_until(lambda: not whole_system.rows(HELD), what="tests before this one have left")
    task = ""
    try:
        said = resolute("limits", "set", *OF_USER, "--slots", "1", *master)
        assert re.search(r"user determined +all +1 slot +0 +1 +wait", said)
        assert "user determined" in resolute("limits", "list", *master)

        printed = det("cmd", "run", "-d", "--config", "resources.slots=2", "sleep", "600")
        task = printed.split()[-1]
        wait_until(lambda: whole_system.rows(WAITING, task), what="the queue has a reason")
        why = resolute("why", task, *master)
        assert "a limit of slots at once is reached" in why
        assert "user determined" in why
        assert not whole_system.rows(STARTED, task)

        resolute("limits", "delete", *OF_USER, *master)
        wait_until(lambda: whole_system.rows(STARTED, task), what="it has its slots")
        assert "user determined" not in resolute("limits", "list", *master)
        assert "there is no such limit" in resolute("limits", "delete", *OF_USER, *master, code=1)
    finally:
        if task:
            det("cmd", "kill", task)
        if "user determined" in resolute("limits", "list", *master):
            resolute("limits", "delete", *OF_USER, *master)
        wait_until(lambda: not whole_system.rows(HELD), what="it has left")


def test_a_weight_is_set_seen_and_removed(whole_system: WholeSystem) -> None:
    resolute, master = Resolute(whole_system.layout.root), ("--master", whole_system.url)
    try:
        assert re.search(r"user determined +2.5 ", resolute("shares", "set", *OF_USER, "--weight", "2.5", *master))
        assert re.search(r"user determined +2.5 ", resolute("shares", "list", *master))
        assert "weight" in resolute("shares", "set", *OF_USER, "--weight", "0", *master, code=1)
        assert re.search(r"user determined +2.5 ", resolute("shares", "list", *master)), (
            "what is refused changes nothing"
        )
    finally:
        resolute("shares", "delete", *OF_USER, *master)
    assert "user determined" not in resolute("shares", "list", *master)
    assert "there is no such weight" in resolute("shares", "delete", *OF_USER, *master, code=1)
