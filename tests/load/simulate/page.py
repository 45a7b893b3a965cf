"""Command line: ``python -m tests.load.simulate.page RESULTS docs/simulation-results.md``: puts the results of
``matrix`` into the page, between ``<!-- TRACE LOAD -->`` and ``<!-- end -->``, and draws the plots that it shows."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tests.load.simulate.matrix import COMPARED, SIMULATED, Result, Simulated, results_of
from tests.load.simulate.policies.table import POLICIES
from tests.load.simulate.report.cuts import by_cut
from tests.load.simulate.report.markdown import duration
from tests.load.simulate.report.measures import Measures, Spread, spread
from tests.load.simulate.report.plots import draw
from tests.load.simulate.report.table import table

PLOTTED: Final = "plots"
"""Folder beside the page."""
IN_PLOTS: Final = ("fifo", "easy", "easy-true", "pods-in-order", "resolute", "resolute-fair")
_PART: Final = re.compile(r"<!-- (?P<name>[a-z]+ [\w.]+) -->\n.*?<!-- end -->", re.DOTALL)
_PLOT: Final = re.compile(r"\(plots/(?P<trace>[a-z]+)-(?P<load>[\d.]+)-(?P<plot>[a-z]+)\.svg\)")

Found = dict[str, list[Result]]
"""Results by policy."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.load.simulate.page", description=__doc__)
    parser.add_argument("results", type=Path, help="folder with the results")
    parser.add_argument("page", type=Path, help="page to put them into")
    arguments = parser.parse_args(argv)
    text = arguments.page.read_text()
    shown = {mark["name"] for mark in _PART.finditer(text)}
    found = {name: _found(arguments.results, one) for name, one in _by_name().items() if name in shown}
    arguments.page.write_text(filled(text, found))
    for name, plots in plots_of(text).items():
        _draw(name, found[name], arguments.page.parent / PLOTTED, plots)
    return 0


def _found(folder: Path, one: Simulated) -> Found:
    """What has been run; those that are compared, on the same cuts."""
    of = {policy: runs for policy in one.policies if (runs := results_of(folder, one, policy))}
    cuts = min((len(of[policy]) for policy in COMPARED if policy in of), default=0)
    return {policy: runs[:cuts] if policy in COMPARED else runs for policy, runs in of.items()}


def plots_of(page: str) -> dict[str, list[str]]:
    """Plots that the page shows, by trace and load."""
    found: dict[str, list[str]] = {}
    for shown in _PLOT.finditer(page):
        found.setdefault(f"{shown['trace']} {shown['load']}", []).append(shown["plot"])
    return found


def _by_name() -> dict[str, Simulated]:
    return {f"{one.name} {one.load:g}": one for one in SIMULATED}


def filled(page: str, found: dict[str, Found]) -> str:
    """The page with the tables of what its marks name: a trace and a load, or ``estimates all``.

    Raises KeyError for a name that has no results.
    """

    def part(mark: re.Match[str]) -> str:
        name = mark["name"]
        text = estimates(found) if name == "estimates all" else tables(found[name])
        return f"<!-- {name} -->\n\n{text}\n\n<!-- end -->"

    return _PART.sub(part, page)


def tables(of: Found) -> str:
    """Of the first cut, and of all cuts what is compared."""
    first = next(iter(of.values()))[0].report
    begin = (
        f"{first.jobs:,} jobs in {duration(first.span_s)} on {first.nodes} nodes with {first.slots:,} GPUs"
        + (f", submitted {first.speedup:.2f} times as fast" if first.speedup != 1 else "")
        + "."
    )
    parts = [begin, _overview(of), "Waiting time by GPUs of the job, mean and 95th percentile:", _by_size(of)]
    parts += ["Mean waiting time of users, from the one who waits least to the one who waits longest:", _by_user(of)]
    if len(first.policies[0].wait_s_by_priority) > 1:
        by_priority = _grouped(of, lambda one: one.wait_s_by_priority)
        parts += ["Waiting time by priority, smaller first, mean and 95th percentile:", by_priority]
    several = {policy: [one.measures for one in runs] for policy, runs in of.items() if len(runs) > 1}
    if several:
        parts += ["Several cuts, of which the tables above are about the first:", by_cut(several)]
    return "\n\n".join(parts)


def estimates(found: dict[str, Found]) -> str:
    """How far off expectations were."""
    head = (
        "Trace and load",
        "Run time, factor, median",
        "90 %",
        "Start, jobs",
        "error, median",
        "90 %",
        "Wait of these, median",
    )
    rows = []
    for name, of in found.items():
        if "resolute" not in of:
            continue
        first = of["resolute"][0].measures
        foreseen = first.foreseen_error_s
        if foreseen.count:
            rows.append(
                (
                    name,
                    f"{first.run_time_error.median:.1f}",
                    f"{first.run_time_error.p90:.0f}",
                    f"{foreseen.count}",
                    duration(foreseen.median),
                    duration(foreseen.p90),
                    duration(first.foreseen_wait_s.median),
                )
            )
    return table(head, rows)


def _overview(of: Found) -> str:
    head = ("Policy", "In use", "Wait, mean", "95 %", "Slowdown, mean", "Fairness", "Evictions", "Work lost")
    rows = [
        (
            POLICIES[policy].title,
            f"{one.utilisation:.1%}",
            duration(one.wait_s.mean),
            duration(one.wait_s.p95),
            f"{one.slowdown.mean:.1f}",
            f"{one.fairness:.2f}",
            f"{one.evictions}",
            f"{one.lost_slot_s / 3600:.0f} GPU h",
        )
        for policy, one in _first(of)
    ]
    stuck = [(policy, one.never_started) for policy, one in _first(of) if one.never_started]
    said = [f"{POLICIES[policy].title}: {count:,} jobs never started." for policy, count in stuck]
    return "\n\n".join([table(head, rows), *said])


def _by_size(of: Found) -> str:
    return _grouped(of, lambda one: one.wait_s_by_size)


def _grouped(of: Found, groups_of: Callable[[Measures], dict[str, Spread]]) -> str:
    names = list(groups_of(next(iter(of.values()))[0].measures))
    rows = []
    for policy, one in _first(of):
        groups = groups_of(one)
        rows.append((POLICIES[policy].title, *(_mean_and_p95(groups.get(name, Spread())) for name in names)))
    return table(("Policy", *(name.lstrip("0").replace("-0", "-") for name in names)), rows)


def _mean_and_p95(of: Spread) -> str:
    return f"{duration(of.mean)}, {duration(of.p95)}"


def _by_user(of: Found) -> str:
    rows = []
    for policy, one in _first(of):
        users = spread([user.mean for user in one.wait_s_by_user.values()])
        rows.append((POLICIES[policy].title, duration(users.median), duration(users.p90), duration(users.max)))
    return table(("Policy", "Median", "90 %", "Longest"), rows)


def _first(of: Found) -> list[tuple[str, Measures]]:
    return [(policy, results[0].measures) for policy, results in of.items()]


def _draw(name: str, of: Found, folder: Path, plots: Sequence[str]) -> None:
    """Of the first cut."""
    first = {policy: of[policy][0] for policy in IN_PLOTS if policy in of}
    report = replace(first["resolute"].report, policies=tuple(result.measures for result in first.values()))
    folder.mkdir(parents=True, exist_ok=True)
    draw(report, [result.curves for result in first.values()], folder, name.replace(" ", "-"), plots)


if __name__ == "__main__":
    sys.exit(main())
