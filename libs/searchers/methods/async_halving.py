"""async_halving: ASHA with a single bracket (docs/reference/experiments.md 3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from libs.searchers.methods import halving
from libs.searchers.methods.asha import AshaSearch
from libs.searchers.methods.brackets import BracketShare, plan_brackets
from libs.searchers.methods.definition import MethodDefinition, Positive
from libs.searchers.methods.halving import HalvingConfig
from libs.searchers.sampling.trial_source import TrialSource
from libs.shapes.shape import whole


class AsyncHalvingConfig(HalvingConfig, frozen=True, kw_only=True, tag_field="name", tag="async_halving"):
    """ASHA with a single bracket."""

    num_rungs: Positive

    def most_rungs(self) -> int:
        return self.num_rungs

    def shares(self) -> list[BracketShare]:
        return [BracketShare(self.num_rungs, self.max_trials, self.max_concurrent_trials)]


def build(config: AsyncHalvingConfig, trials: TrialSource, snapshot: Mapping[str, Any] | None) -> AshaSearch:
    (bracket,) = plan_brackets(config)
    return AshaSearch.build(bracket, config.goal, trials, snapshot)


DEFINITION: Final = MethodDefinition[AsyncHalvingConfig](
    name="async_halving",
    config=AsyncHalvingConfig,
    fields={**halving.FIELDS, "num_rungs": whole(1)},
    defaults=halving.DEFAULTS,
    required=("num_rungs", "max_trials"),
    is_timed=True,
    build=build,
    count_at_once=halving.count_at_once,
    preview=halving.preview,
    most_refusals=halving.most_refusals,
)
