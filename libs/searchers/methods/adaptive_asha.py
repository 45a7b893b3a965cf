"""adaptive_asha: ASHA brackets of different depth side by side, so that no single guess about stopping decides.

The brackets share the random stream and nothing else: a slot freed in one never funds another.
Source: docs/reference/experiments.md 3.5.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, Literal, Self

import msgspec
from msgspec import Struct

from libs.searchers.actions import Create
from libs.searchers.events import ExitedReason
from libs.searchers.methods import halving
from libs.searchers.methods.asha import AshaSearch
from libs.searchers.methods.brackets import Bracket, BracketShare, plan_brackets, split_concurrency, split_trials
from libs.searchers.methods.definition import MethodDefinition, Positive
from libs.searchers.methods.halving import HalvingConfig
from libs.searchers.methods.method import MethodAction
from libs.searchers.reports import Goal, missing_metrics
from libs.searchers.sampling.trial_source import TrialSource
from libs.shapes.shape import list_of, one_of, whole


class Mode(StrEnum):
    """How the trials are spread: aggressive stops early, conservative hedges with gentler brackets."""

    AGGRESSIVE = "aggressive"
    STANDARD = "standard"
    CONSERVATIVE = "conservative"


class AdaptiveAshaConfig(HalvingConfig, frozen=True, kw_only=True, tag_field="name", tag="adaptive_asha"):
    """Several ASHA brackets side by side; ``bracket_rungs`` names their depths instead of ``mode``."""

    mode: Mode = Mode.STANDARD
    max_rungs: Positive = 5
    bracket_rungs: tuple[Positive, ...] = ()

    def most_rungs(self) -> int:
        return max(self.bracket_rungs, default=0) or deepest(self)

    def shares(self) -> list[BracketShare]:
        depths = sorted(self.bracket_rungs or choose_depths(self.mode, deepest(self)), reverse=True)
        trials = split_trials(self.max_trials, self.divisor, depths)
        concurrency = split_concurrency(self.max_concurrent_trials, self.divisor, trials)
        return [BracketShare(*share) for share in zip(depths, trials, concurrency, strict=True)]


def deepest(config: AdaptiveAshaConfig) -> int:
    """Most rungs that still make sense: each one divides both the time and the trials by the divisor."""
    base = math.log(config.divisor)
    by_time = int(math.log(config.max_time) / base) + 1
    by_trials = int(math.log(config.max_trials) / base) + 1
    return min(config.max_rungs, by_time, by_trials)


def choose_depths(mode: Mode, rungs: int) -> list[int]:
    """Rungs of each bracket, ascending, when the deepest one has ``rungs``."""
    shallowest = {Mode.AGGRESSIVE: rungs, Mode.STANDARD: (rungs - 1) // 2 + 1, Mode.CONSERVATIVE: 1}[mode]
    return list(range(shallowest, rungs + 1))


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


def build(config: AdaptiveAshaConfig, trials: TrialSource, snapshot: Mapping[str, Any] | None) -> AdaptiveAshaSearch:
    return AdaptiveAshaSearch.build(plan_brackets(config), config.goal, trials, snapshot)


DEFINITION: Final = MethodDefinition[AdaptiveAshaConfig](
    name="adaptive_asha",
    config=AdaptiveAshaConfig,
    fields={
        **halving.FIELDS,
        "mode": one_of("aggressive", "standard", "conservative"),
        "max_rungs": whole(1),
        "bracket_rungs": list_of(whole()),
    },
    defaults={**halving.DEFAULTS, "mode": "standard", "max_rungs": 5, "bracket_rungs": []},
    required=("max_trials",),
    is_timed=True,
    build=build,
    count_at_once=halving.count_at_once,
    preview=halving.preview,
    most_refusals=halving.most_refusals,
)
