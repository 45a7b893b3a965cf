"""A search as the experiment engine drives it: the bookkeeping that all methods share, around one of them.

Everything a search knows is in its snapshot. Events may arrive twice: what was handled once does nothing again, and a
trial that is over takes no further part. Source: docs/reference/experiments.md 3.1 and 4.
"""

from collections.abc import Mapping
from typing import Any, Self, assert_never

import msgspec
from msgspec import Struct

from libs.searchers.actions import Action, Create, Shutdown
from libs.searchers.config import parse_searcher
from libs.searchers.errors import UnknownTrialError
from libs.searchers.events import ExitedReason
from libs.searchers.methods.method import MethodAction, SearchMethod
from libs.searchers.refusals import Refusals
from libs.searchers.sampling.rng import RandomStream
from libs.searchers.sampling.space import parse_space
from libs.searchers.sampling.trial_source import TrialSource

TrialSet = dict[str, bool]
"""Request ids of trials, in the form of the snapshot: every value is true."""


class SearchBookkeeping(Struct):
    """What became of the trials; ``exits`` are those that ended early, each also in ``cancels`` or ``failures``."""

    trials_requested: int = 0
    trials_created: TrialSet = {}
    trials_closed: TrialSet = {}
    exits: TrialSet = {}
    cancels: TrialSet = {}
    failures: TrialSet = {}
    trial_progress: dict[str, float] = {}
    refusals: Refusals = msgspec.field(default_factory=Refusals)


class Searcher:
    """One search. Not for sharing: every call moves it on, and the caller stores its snapshot with the actions."""

    def __init__(
        self, *, method: SearchMethod, stream: RandomStream, books: SearchBookkeeping, most_refusals: int | None
    ) -> None:
        """``most_refusals`` as the definition of the method has it."""
        self._method = method
        self._stream = stream
        self._books = books
        self._most_refusals = most_refusals

    @classmethod
    def create(cls, config_searcher: Mapping[str, Any], hyperparameters: Mapping[str, Any], seed: int) -> Self:
        """Set up a new search from the stored configuration; ask it for ``initial_trials`` next.

        seed  0..2^32-1; same configuration, seed and events: same actions, down to the request ids
        Raises InvalidSearcher or InvalidSpace.
        """
        chosen, stream = parse_searcher(config_searcher), RandomStream.from_seed(seed)
        trials = TrialSource(parse_space(hyperparameters), stream)
        return cls(
            method=chosen.method.build(chosen.config, trials, None),
            stream=stream,
            books=SearchBookkeeping(),
            most_refusals=chosen.method.most_refusals(chosen.config, trials.space),
        )

    @classmethod
    def restore(
        cls, config_searcher: Mapping[str, Any], hyperparameters: Mapping[str, Any], snapshot: Mapping[str, Any]
    ) -> Self:
        """Continue the search whose ``snapshot()`` this is; its configuration is not part of it."""
        chosen, stream = parse_searcher(config_searcher), RandomStream.restore(snapshot["rand"])
        trials = TrialSource(parse_space(hyperparameters), stream)
        return cls(
            method=chosen.method.build(chosen.config, trials, snapshot["search_method_state"]),
            stream=stream,
            books=msgspec.convert(snapshot, SearchBookkeeping),
            most_refusals=chosen.method.most_refusals(chosen.config, trials.space),
        )

    def snapshot(self) -> dict[str, Any]:
        """All that the search knows, as plain values that JSON can carry; later events leave it unchanged."""
        books: dict[str, Any] = msgspec.to_builtins(self._books)
        return books | {"rand": self._stream.snapshot(), "search_method_state": self._method.snapshot()}

    def initial_trials(self) -> list[Action]:
        """The trials to begin with; nothing when they were asked for before."""
        return [] if self._books.trials_requested else self._record(self._method.initial_trials())

    def trial_created(self, request_id: str) -> list[Action]:
        """A Create was carried out: from here on the trial can have events."""
        if request_id not in self._books.trials_created:
            self._books.trials_created[request_id] = True
            self._books.trial_progress[request_id] = 0.0
        return []

    def validation_completed(self, request_id: str, metrics: Mapping[str, Any]) -> list[Action]:
        """A trial validated; ``metrics`` is its whole report. Does nothing when ``missing_metrics`` are missing."""
        if self._is_over(request_id):
            return []
        released = [] if self._method.missing_metrics(metrics) else self._accepted()
        return [*released, *self._record(self._method.validation_completed(request_id, metrics))]

    def missing_metrics(self, metrics: Mapping[str, Any]) -> tuple[str, ...]:
        """Names of metrics that the search needs and a report does not give as numbers: something to tell the user."""
        return self._method.missing_metrics(metrics)

    def trial_exited_early(self, request_id: str, reason: ExitedReason) -> list[Action]:
        """A trial ends for another reason than being done; ``trial_exited`` must follow."""
        if self._is_over(request_id):
            return []
        self._books.exits[request_id] = True
        match reason:
            case ExitedReason.INVALID_HP | ExitedReason.INIT_INVALID_HP:
                del self._books.trial_progress[request_id]
                self._books.refusals.in_a_row += 1
            case ExitedReason.USER_CANCELED:
                self._books.cancels[request_id] = True
            case ExitedReason.ERRORED:
                self._books.failures[request_id] = True
            case _:
                assert_never(reason)
        return self._record(self._method.trial_exited_early(request_id, reason))

    def trial_exited(self, request_id: str) -> list[Action]:
        """A trial is over; ends with Shutdown when it was the last one."""
        if self._is_closed(request_id):
            return []
        books = self._books
        books.trials_closed[request_id] = True
        released = [] if request_id in books.exits else self._accepted()
        actions = [*released, *self._record(self._method.trial_exited(request_id))]
        if len(books.trials_closed) < books.trials_requested:
            return actions
        return [*actions, self._shutdown()]

    def set_trial_progress(self, request_id: str, progress: float) -> None:
        """Note how far a running trial is, 0..1; anything else, and anything lower than noted before, is dropped.

        Reports may come late or twice, and a restarted trial begins again below where it was.
        """
        if not self._is_over(request_id) and 0.0 <= progress <= 1.0:
            self._books.trial_progress[request_id] = max(self._books.trial_progress[request_id], progress)

    def progress(self) -> float:
        """How far the search is, 0..1."""
        return self._method.progress(self._books.trial_progress, self._books.trials_closed)

    @property
    def refused(self) -> str:
        """Why no trial is replaced any more, in words for the owner; "" while that is not so.

        Those that still run may yet change it. What ends by an error or is canceled does not: it says neither.
        """
        in_a_row = self._books.refusals.in_a_row
        if self._most_refusals is None or in_a_row < self._most_refusals:
            return ""
        return (
            f"the code refused the hyperparameters of {in_a_row} trials in a row, "
            "and none of the others has reported a validation since: the search creates no more trials"
        )

    def _shutdown(self) -> Shutdown:
        if self.refused:
            return Shutdown(failure=True, reason=self.refused)
        requested = self._books.trials_requested
        return Shutdown(cancel=len(self._books.cancels) >= requested, failure=len(self._books.failures) >= requested)

    def _accepted(self) -> list[Action]:
        """A trial could be trained: what was withheld is worth being created."""
        withheld = self._books.refusals.withheld
        self._books.refusals = Refusals()
        return self._record([*withheld])

    def _is_over(self, request_id: str) -> bool:
        return self._is_closed(request_id) or request_id in self._books.exits

    def _is_closed(self, request_id: str) -> bool:
        if request_id not in self._books.trials_created:
            raise UnknownTrialError(request_id)
        return request_id in self._books.trials_closed

    def _record(self, actions: list[MethodAction]) -> list[Action]:
        creates = [action for action in actions if isinstance(action, Create)]
        if self.refused:
            self._books.refusals.withheld += creates
            return [action for action in actions if not isinstance(action, Create)]
        self._books.trials_requested += len(creates)
        return list(actions)
