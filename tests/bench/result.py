"""Result of a benchmark, as it is printed and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Result:
    """One figure. ``ratio`` is value / baseline; ``goal`` is what the ratio should reach, None where there is none."""

    name: str
    value: float
    unit: str
    baseline: float
    goal: float | None
    better: Literal["higher", "lower"]

    @property
    def ratio(self) -> float:
        return self.value / self.baseline

    @property
    def is_met(self) -> bool | None:
        if self.goal is None:
            return None
        return self.ratio >= self.goal if self.better == "higher" else self.ratio <= self.goal

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio}


def table(results: Sequence[Result]) -> str:
    """For people."""
    lines = [f"{'BENCHMARK':<44} {'VALUE':>12} {'BASELINE':>12} {'UNIT':<10} {'RATIO':>8} {'GOAL':>10}"]
    for result in results:
        sign = ">=" if result.better == "higher" else "<="
        goal = "-" if result.goal is None else f"{sign} {result.goal:g}"
        outcome = {None: "", True: "met", False: "MISSED"}[result.is_met]
        lines.append(
            f"{result.name:<44} {result.value:>12.4g} {result.baseline:>12.4g} {result.unit:<10} "
            f"{result.ratio:>8.3f} {goal:>10} {outcome}"
        )
    return "\n".join(lines)
