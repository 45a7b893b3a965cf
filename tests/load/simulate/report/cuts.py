"""Table of several cuts of a trace, which tells what holds from what one run happened to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tests.load.simulate.policies.table import POLICIES
from tests.load.simulate.report.markdown import duration
from tests.load.simulate.report.measures import Measures
from tests.load.simulate.report.table import table

_COLUMNS: Final[tuple[tuple[str, Callable[[Measures], float], Callable[[float], str]], ...]] = (
    ("in use", lambda one: one.utilisation, lambda value: f"{value:.1%}"),
    ("slowdown", lambda one: one.slowdown.mean, lambda value: f"{value:.1f}"),
    ("95 % of the largest", lambda one: one.wait_s_by_size[max(one.wait_s_by_size)].p95, duration),
)


def by_cut(of: Mapping[str, Sequence[Measures]]) -> str:
    """A row for each cut and one for their mean, each with a cell for each policy and measure.

    of  by policy, in the order of the cuts; as many of each
    """
    head = ["Cut", *(f"{POLICIES[policy].title}: {name}" for name, _, _ in _COLUMNS for policy in of)]
    values = [[[value(one) for one in each] for each in of.values()] for _, value, _ in _COLUMNS]
    texts = [text for _, _, text in _COLUMNS for _ in of]
    columns = [column for columns in values for column in columns]
    rows = [
        [f"{cut + 1}", *(text(column[cut]) for text, column in zip(texts, columns, strict=True))]
        for cut in range(len(columns[0]))
    ]
    means = (text(sum(column) / len(column)) for text, column in zip(texts, columns, strict=True))
    return table(head, [*rows, ["mean", *means]])
