"""Driving a search the way the experiment engine does, with trials that train in steps."""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct, field

from libs.searchers.actions import Action, Create, Shutdown, Stop
from libs.searchers.events import ExitedReason
from libs.searchers.searcher import Searcher


class Trial(Struct):
    create: Create
    number: int  # in order of creation, from 1
    time: int = 0
    stopped: bool = False


class Run(Struct):
    """A search and its trials; every action that a call returns is carried out before the call returns."""

    searcher: Searcher
    trials: dict[str, Trial] = field(default_factory=dict)
    running: dict[str, Trial] = field(default_factory=dict)
    shutdowns: list[Shutdown] = field(default_factory=list)

    def start(self) -> list[Action]:
        return self._carry_out(self.searcher.initial_trials())

    def report(self, trial: Trial, metrics: dict[str, Any]) -> list[Action]:
        return self._carry_out(self.searcher.validation_completed(trial.create.request_id, metrics))

    def exit_early(self, trial: Trial, reason: ExitedReason) -> list[Action]:
        return self._carry_out(self.searcher.trial_exited_early(trial.create.request_id, reason))

    def exit(self, trial: Trial) -> list[Action]:
        self.running.pop(trial.create.request_id, None)
        return self._carry_out(self.searcher.trial_exited(trial.create.request_id))

    def numbered(self, number: int) -> Trial:
        return list(self.trials.values())[number - 1]

    def name(self, action: Action) -> str:
        """An action as a word: ``create T4``, ``stop T2``, ``shutdown``."""
        if isinstance(action, Shutdown):
            return "shutdown"
        return f"{type(action).__name__.lower()} T{self.trials[action.request_id].number}"

    def train(self, *, max_time: int, every: int, loss: Callable[[Trial], float] = lambda trial: trial.number) -> None:
        """Train all trials in turn, one validation each, until none is left."""
        self.start()
        while self.running:
            for trial in list(self.running.values()):
                trial.time += every
                self.report(trial, {"loss": loss(trial), "batches": trial.time})
                if trial.stopped or trial.time >= max_time:
                    self.exit(trial)

    def _carry_out(self, actions: Iterable[Action]) -> list[Action]:
        done = list(actions)
        for action in done:
            match action:
                case Create(request_id=request_id):
                    trial = Trial(action, number=len(self.trials) + 1)
                    self.trials[request_id] = self.running[request_id] = trial
                    self.searcher.trial_created(request_id)
                case Stop(request_id=request_id):
                    self.trials[request_id].stopped = True
                case Shutdown():
                    self.shutdowns.append(action)
        return done
