"""What goes on while an installation is changed under it: a trial in each pool, and somebody who types commands."""

from __future__ import annotations

import http.client
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import httpx

from tests.harness.client import Client
from tests.harness.installation import POOLS, Installation
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.programs import submit

ENDLESS: Final = {"steps": 0, "pause_s": 0.3}
PROGRESS: Final = 3
"""Steps that each trial does after a disturbance, before the next."""


@dataclass(frozen=True)
class Trial:
    """One that does steps until it is told to leave."""

    experiment: int
    trial: int
    pods: frozenset[str]


class Trials:
    """One in each pool."""

    def __init__(self, installation: Installation, det: Client, look: Looking) -> None:
        self._installation = installation
        self._det = det
        self._look = look
        resources = [{"slots_per_trial": 1, "resource_pool": pool} for pool in POOLS]
        experiments = [submit(det, "steps.py", hyperparameters=ENDLESS, resources=each) for each in resources]
        wait_until(lambda: all(look.trials(each) for each in experiments))
        trials = [(each, int(look.trial(each)["id"])) for each in experiments]
        for _, trial in trials:
            wait_until(lambda: self._steps(trial), timeout_s=120, every_s=0.5, what="a trial does steps")  # noqa: B023
        self.all = tuple(Trial(experiment, trial, self._pods(experiment)) for experiment, trial in trials)

    def wait_for_progress(self, after: str) -> None:
        """Each of them, as far as its metrics tell."""
        for each in self.all:
            before = wait_until(lambda: self._steps(each.trial), timeout_s=180, every_s=0.5, what="the api answers")  # noqa: B023
            wait_until(
                lambda: self._steps(each.trial) >= before + PROGRESS,  # noqa: B023
                timeout_s=180,
                every_s=0.5,
                what=f"trial {each.trial} goes on after {after}",
            )

    def end(self) -> None:
        """Ask them to leave; they did every step once in the same pod all the time, and metrics and logs have all."""
        for each in self.all:
            assert self._pods(each.experiment) == each.pods
            self._det("experiment", "cancel", str(each.experiment))
        for each in self.all:
            self._look.wait(each.experiment, "STATE_CANCELED")
            trial = self._look.trial(each.experiment)
            done = list(range(1, int(trial["totalBatchesProcessed"]) + 1))
            printed = self._look.printed(each.trial)
            assert trial["restarts"] == 0
            assert self._look.steps(each.trial) == done
            assert [line for line in printed if line.startswith("step ")] == [f"step {number}" for number in done]
            assert f"asked to leave after step {done[-1]}" in printed

    def _steps(self, trial: int) -> int:
        """The last one in the metrics; 0 while nobody answers."""
        try:
            return max(self._look.steps(trial), default=0)
        except httpx.HTTPError:
            return 0

    def _pods(self, experiment: int) -> frozenset[str]:
        selector = f"determined.ai/experiment_id={experiment}"
        return frozenset(self._installation.cluster("get", "pods", "-A", "-l", selector, "-o", "name").split())


@dataclass
class Typed:
    """Commands that somebody has typed, one after the other, and what those said that failed."""

    commands: int = 0
    failures: list[str] = field(default_factory=list)


@contextmanager
def repeating(act: Callable[[], None], *, pause_s: float = 0.0) -> Iterator[None]:
    """Calls ``act`` again and again beside the block."""
    stop = threading.Event()

    def go_on() -> None:
        while not stop.wait(pause_s):
            act()

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def typing(det: Client, commands: Sequence[Sequence[str]]) -> Iterator[Typed]:
    """Runs these again and again."""
    typed = Typed()
    following = itertools.cycle(commands)

    def type_next() -> None:
        ended = det.run(*next(following))
        typed.commands += 1
        if ended.code != 0:
            typed.failures.append(str(ended))

    with repeating(type_next):
        yield typed


@dataclass
class Asked:
    """Requests, each on a connection of its own, and how those ended that got no answer or an error of the server."""

    requests: int = 0
    failures: list[str] = field(default_factory=list)


@contextmanager
def asking(url: str, path: str) -> Iterator[Asked]:
    """Asks again and again, without a retry."""
    address = urlsplit(url)
    asked = Asked()

    def ask() -> None:
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        asked.requests += 1
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            if answer.status >= 500:
                asked.failures.append(f"request {asked.requests}: {answer.status}")
        except (OSError, http.client.HTTPException) as error:
            asked.failures.append(f"request {asked.requests}: {error!r}")
        finally:
            connection.close()

    with repeating(ask, pause_s=0.02):
        yield asked


def commands_about(trial: Trial) -> Sequence[Sequence[str]]:
    """Reading and writing, of every kind of answer: pages, streams, changes."""
    experiment = str(trial.experiment)
    return (
        ("experiment", "list"),
        ("experiment", "describe", experiment),
        ("experiment", "set", "description", experiment, "typed"),
        ("trial", "logs", "--tail", "3", str(trial.trial)),
        ("experiment", "label", "add", experiment, "typed"),
        ("job", "list"),
        ("agent", "list"),
    )
