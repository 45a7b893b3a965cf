"""Tables in Markdown of one report."""

from __future__ import annotations

from collections.abc import Callable

from tests.load.simulate.policies.table import POLICIES
from tests.load.simulate.report.measures import Measures, Spread
from tests.load.simulate.report.report import Report
from tests.load.simulate.report.table import table


def markdown(report: Report) -> str:
    parts = [_heading(report), _overview(report), _groups("Waiting time by GPUs of the job", report, _by_size)]
    if len(report.policies[0].wait_s_by_priority) > 1:
        parts.append(_groups("Waiting time by priority, smaller first", report, _by_priority))
    return "\n\n".join(parts) + "\n"


def duration(seconds: float) -> str:
    for unit, length in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def _heading(report: Report) -> str:
    left_out = [
        f"{count:,} jobs {why}"
        for count, why in (
            (report.jobs_left_out, "of its sparse beginning"),
            (report.jobs_without_gpus, "without GPUs"),
            (report.jobs_that_never_ran, "that never ran"),
        )
        if count
    ]
    return (
        f"## {report.trace}, load {report.load:.2f}\n\n"
        f"{report.jobs:,} jobs in {duration(report.span_s)} on {report.nodes} nodes with {report.slots:,} GPUs."
        + (f" Left out: {', '.join(left_out)}." if left_out else "")
        + (f" Submissions follow each other {report.speedup:.2f} times as fast." if report.speedup != 1 else "")
    )


def _overview(report: Report) -> str:
    head = (
        "Policy",
        "Utilisation",
        "Wait, mean",
        "median",
        "95 %",
        "longest",
        "Slowdown, mean",
        "median",
        "Fairness",
        "Evictions",
        "Work lost",
        "Start foreseen, error, median",
        "90 %",
        "Bound and idle",
        "Never started",
        "Makespan",
    )
    return table(head, [_overview_row(one) for one in report.policies])


def _overview_row(one: Measures) -> tuple[str, ...]:
    foreseen = one.foreseen_error_s
    return (
        POLICIES[one.policy].title,
        f"{one.utilisation:.1%}",
        duration(one.wait_s.mean),
        duration(one.wait_s.median),
        duration(one.wait_s.p95),
        duration(one.wait_s.max),
        f"{one.slowdown.mean:.1f}",
        f"{one.slowdown.median:.1f}",
        f"{one.fairness:.2f}",
        f"{one.evictions}",
        f"{one.lost_slot_s / 3600:.0f} GPU h",
        duration(foreseen.median) if foreseen.count else "none",
        duration(foreseen.p90) if foreseen.count else "none",
        f"{one.idle_bound:.1%}",
        f"{one.never_started}",
        duration(one.makespan_s),
    )


def _by_size(one: Measures) -> dict[str, Spread]:
    return one.wait_s_by_size


def _by_priority(one: Measures) -> dict[str, Spread]:
    return one.wait_s_by_priority


def _groups(title: str, report: Report, groups_of: Callable[[Measures], dict[str, Spread]]) -> str:
    """Mean and 95th percentile of each group."""
    groups = groups_of(report.policies[0])
    head = ("Policy", *(f"{name.lstrip('0').replace('-0', '-')} ({of.count:,} jobs)" for name, of in groups.items()))
    rows = [
        (
            POLICIES[one.policy].title,
            *(f"{duration(of.mean)}, 95 % {duration(of.p95)}" for of in groups_of(one).values()),
        )
        for one in report.policies
    ]
    return f"{title}:\n\n" + table(head, rows)
