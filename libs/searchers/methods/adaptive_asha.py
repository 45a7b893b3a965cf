"""adaptive_asha: ASHA brackets of different depth side by side, so that no single guess about stopping decides.

The brackets share the random stream and nothing else: a slot freed in one never funds another.
Source: docs/reference/experiments.md 3.5.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, Self

import msgspec
from msgspec import Struct

from libs.searchers.actions import Create
from libs.searchers.events import ExitedReason
from libs.searchers.methods.asha import AshaSearch
from libs.searchers.methods.brackets import Bracket
from libs.searchers.methods.method import MethodAction
from libs.searchers.reports import Goal, missing_metrics
from libs.searchers.sampling.trial_source import TrialSource


class AdaptiveAshaState(Struct, frozen=True):
    """``trial_table`` has the index of the bracket that each trial belongs to."""

    trial_table: dict[str, int]
    sub_search_states: list[dict[str, Any]]
    search_method_type: Literal["adaptive_asha"] = "adaptive_asha"


class AdaptiveAshaSearch:
    """Hands every event to the bracket that owns the trial."""

    def __init__(self, *, brackets: Sequence[AshaSearch], goal: Goal, trial_table: dict[str, int]) -> None:
        self._brackets = brackets
        self._goal = goal
        self._trial_table = trial_table

    @classmethod
    def build(
        cls,
        brackets: Sequence[Bracket],
        goal: Goal,
        trials: TrialSource,
        snapshot: Mapping[str, Any] | None = None,
    ) -> Self:
        """Begin a search, or continue the one that ``snapshot`` describes."""
        if snapshot is None:
            searches = [AshaSearch.build(bracket, goal, trials) for bracket in brackets]
            return cls(brackets=searches, goal=goal, trial_table={})
        state = msgspec.convert(snapshot, AdaptiveAshaState)
        searches = [
            AshaSearch.build(bracket, goal, trials, sub_state)
            for bracket, sub_state in zip(brackets, state.sub_search_states, strict=True)
        ]
        return cls(brackets=searches, goal=goal, trial_table=state.trial_table)

    def initial_trials(self) -> list[MethodAction]:
        return [
            action
            for index, bracket in enumerate(self._brackets)
            for action in self._owned(index, bracket.initial_trials())
        ]

    def validation_completed(self, request_id: str, metrics: Mapping[str, Any]) -> list[MethodAction]:
        index = self._trial_table[request_id]
        return self._owned(index, self._brackets[index].validation_completed(request_id, metrics))

    def trial_exited_early(self, request_id: str, reason: ExitedReason) -> list[MethodAction]:
        index = self._trial_table[request_id]
        return self._owned(index, self._brackets[index].trial_exited_early(request_id, reason))

    def trial_exited(self, request_id: str) -> list[MethodAction]:
        index = self._trial_table[request_id]
        return self._owned(index, self._brackets[index].trial_exited(request_id))

    def missing_metrics(self, metrics: Mapping[str, Any]) -> tuple[str, ...]:
        return missing_metrics(metrics, self._goal)

    def progress(self, trial_progress: Mapping[str, float], closed: Collection[str]) -> float:
        shares = [bracket.progress(trial_progress, closed) for bracket in self._brackets]
        return sum(shares) / len(shares)

    def snapshot(self) -> dict[str, Any]:
        states = [bracket.snapshot() for bracket in self._brackets]
        return msgspec.structs.asdict(AdaptiveAshaState(dict(self._trial_table), states))

    def _owned(self, index: int, actions: list[MethodAction]) -> list[MethodAction]:
        for action in actions:
            if isinstance(action, Create):
                self._trial_table[action.request_id] = index
        return actions
