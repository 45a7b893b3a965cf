"""Two launchers that live at the same time never have the same name; one that takes another's place has its name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest

from services.launcher.backends.kubernetes.leader_election import identity as instance
from services.launcher.backends.kubernetes.leader_election.identity import instance_name

PROGRAM = """
import sys
from services.launcher.backends.kubernetes.leader_election.identity import instance_name
with instance_name(sys.argv[1]) as name:
    print(name, flush=True)
    sys.stdin.read()
"""


@contextmanager
def launcher(scope: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that has a name, and the name."""
    argv = [sys.executable, "-c", PROGRAM, scope]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def test_the_name_goes_to_the_next_process_even_after_kill_9() -> None:
    scope = uuid4().hex
    with launcher(scope) as (first, name):
        first.kill()
        first.wait()
        with launcher(scope) as (_, next_name):
            assert name
            assert next_name == name


def test_two_at_the_same_time_have_different_names() -> None:
    scope = uuid4().hex
    with launcher(scope) as (_, first), launcher(scope) as (_, second), instance_name(scope) as third:
        assert len({first, second, third}) == 3
    with instance_name(scope) as later:
        assert later == first


def test_whoever_waits_for_something_else_is_not_in_the_way() -> None:
    here, there = uuid4().hex, uuid4().hex
    with instance_name(here) as one, instance_name(there) as other:
        assert one == other  # each of them is the first for what it waits for


@pytest.mark.parametrize("missing", ["_BOOT", "_NETWORK"])
def test_where_nothing_tells_one_place_from_another_every_process_is_new(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instance, missing, type(getattr(instance, missing))("/nowhere"))
    scope = uuid4().hex
    with instance_name(scope) as first:
        pass
    with instance_name(scope) as second:
        assert first != second
