"""Plots of several policies on one workload as SVG, the same bytes for the same input.

matplotlib is loaded by the first plot: tables do without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.load.simulate.policies.table import POLICIES
from tests.load.simulate.report.curves import Curves
from tests.load.simulate.report.report import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Told apart by people who see red and green alike, and by their lightness; the planner stands out.
COLOURS = {
    "fifo": "#9aa5b1",
    "easy": "#3b7dd8",
    "easy-true": "#93bdf0",
    "pods-in-order": "#c58b3a",
    "resolute": "#0b8f6a",
    "resolute-preempt": "#56b894",
    "resolute-fifo": "#b8577a",
    "resolute-robin": "#8c6d46",
    "resolute-fair": "#7a5bc7",
}
INK = "#2b333b"
FAINT = "#dfe3e8"
STYLE: Any = {
    "svg.hashsalt": "resolute",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "axes.titlepad": 14,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
}
WAITS = ((60, "1 min"), (600, "10 min"), (3600, "1 h"), (21_600, "6 h"), (86_400, "1 d"), (604_800, "1 week"))
DAY_S = 86_400.0
PLOTS = ("utilisation", "waits", "sizes")


def draw(
    report: Report, curves: Sequence[Curves], folder: Path, stem: str, wanted: Sequence[str] = PLOTS
) -> list[Path]:
    """Write the plots that are ``wanted`` into ``folder``; returns their paths."""
    import matplotlib as mpl

    mpl.use("svg")
    paths = []
    with mpl.rc_context(STYLE):
        for name, plot in zip(PLOTS, (_utilisation, _waits, _sizes), strict=True):
            if name not in wanted:
                continue
            path = folder / f"{stem}-{name}.svg"
            figure = plot(report, curves)
            figure.savefig(path, metadata={"Date": None, "Creator": None})
            paths.append(path)
    return paths


def _utilisation(report: Report, curves: Sequence[Curves]) -> Figure:
    """A panel for each policy: lines on top of each other would hide what they show."""
    figure = _figure(1.0 + 0.75 * len(curves))
    panels = figure.subplots(len(curves), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    begin, end = 0.1 * report.span_s / DAY_S, 0.9 * report.span_s / DAY_S
    for panel, of in zip(panels, curves, strict=True):
        days = [(part + 0.5) * report.span_s / DAY_S / len(of.utilisation) for part in range(len(of.utilisation))]
        colour = COLOURS[of.policy]
        panel.fill_between(days, of.utilisation, color=colour, alpha=0.22, linewidth=0)
        panel.plot(days, of.utilisation, color=colour, linewidth=1.4)
        panel.axvspan(0, begin, color="white", alpha=0.65, linewidth=0, zorder=3)
        panel.axvspan(end, report.span_s / DAY_S, color="white", alpha=0.65, linewidth=0, zorder=3)
        measured = next(one.utilisation for one in report.policies if one.policy == of.policy)
        panel.text(1.01, 0.62, POLICIES[of.policy].title, color=colour, transform=panel.transAxes, weight="bold")
        panel.text(1.01, 0.22, f"{measured:.1%}", transform=panel.transAxes)
        panel.set_ylim(0, 1.05)
        panel.set_xlim(0, report.span_s / DAY_S)
        panel.set_yticks([0, 1], ["0", "100 %"])
    panels[-1].set_xlabel("days since the first submission; pale: not measured")
    panels[0].set_title(f"GPUs in use: {_subject(report)}")
    height = figure.get_figheight()
    figure.subplots_adjust(left=0.08, right=0.76, top=1 - 0.5 / height, bottom=0.6 / height, hspace=0.35)
    return figure


def _waits(report: Report, curves: Sequence[Curves]) -> Figure:
    figure = _figure(4.4)
    axes = figure.subplots()
    axes.set_xscale("log")
    longest = max((max(of.wait_s, default=1) for of in curves), default=1)
    right = max(longest, WAITS[2][0]) * 1.15
    ends: list[tuple[float, Curves]] = []
    for of in curves:
        count = len(of.wait_s)
        shares = [(step + 1) / count for step in range(count)]
        waits = [max(wait, 1.0) for wait in of.wait_s]
        axes.plot(
            [1.0, *waits, right],
            [shares[0], *shares, 1.0],
            color=COLOURS[of.policy],
            linewidth=2,
            drawstyle="steps-post",
        )
        ends.append((sum(wait <= WAITS[0][0] for wait in of.wait_s) / count, of))
    _time_axis(axes, right)
    axes.set_xlim(10, right)
    lowest = min(share for share, _ in ends)
    axes.set_ylim(max(0.0, lowest - 0.08), 1.005)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    axes.set_xlabel("waited at most")
    axes.set_title(f"Share of the jobs by waiting time: {_subject(report)}")
    _names(axes, [(share, of.policy, f"{share:.0%} within a minute") for share, of in ends])
    figure.subplots_adjust(left=0.08, right=0.72, top=0.88, bottom=0.13)
    return figure


def _sizes(report: Report, curves: Sequence[Curves]) -> Figure:
    figure = _figure(4.4)
    axes = figure.subplots()
    axes.set_yscale("log")
    names = list(curves[0].wait_s_by_size)
    for of in curves:
        means = [max(1.0, of.wait_s_by_size[name]) for name in names]
        axes.plot(range(len(names)), means, color=COLOURS[of.policy], linewidth=2, marker="o", markersize=5)
    axes.set_xticks(range(len(names)), [name.lstrip("0").replace("-0", "-") for name in names])
    axes.set_xlim(-0.3, len(names) - 0.9)
    highest = max(value for of in curves for value in of.wait_s_by_size.values())
    ticks = [(10, "10 s"), *(wait for wait in WAITS if wait[0] <= highest * 2)]
    axes.set_yticks([at for at, _ in ticks], [text for _, text in ticks])
    axes.set_yticks([], minor=True)
    axes.set_ylim(1, max(highest * 1.6, 60))
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    axes.set_xlabel("GPUs of the job")
    axes.set_title(f"Mean waiting time by size: {_subject(report)}")
    _names(axes, [(max(1.0, of.wait_s_by_size[names[-1]]), of.policy, "") for of in curves])
    figure.subplots_adjust(left=0.1, right=0.74, top=0.88, bottom=0.13)
    return figure


def _figure(height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(8.0, height), facecolor="white")


def _subject(report: Report) -> str:
    return f"{report.trace}, load {report.load:.2f}, {report.slots:,} GPUs"


def _time_axis(axes: Axes, longest: float) -> None:
    ticks = [(10, "10 s"), *(wait for wait in WAITS if wait[0] <= longest)]
    axes.set_xticks([at for at, _ in ticks], [text for _, text in ticks])
    axes.set_xticks([], minor=True)


def _names(axes: Axes, names: Sequence[tuple[float, str, str]]) -> None:
    """Names of the policies right of the axes, in the order of their values, near them and none over another one.

    names  value, policy, and what else is said of it
    """
    least = 0.13 if any(said for _, _, said in names) else 0.075
    heights: list[float] = []
    for value, _, _ in sorted(names):
        wanted = axes.transAxes.inverted().transform(axes.transData.transform((1, value)))[1]
        heights.append(max(wanted, heights[-1] + least if heights else 0.0))
    # Those that stand too high push the ones below down.
    for place in range(len(heights) - 1, -1, -1):
        highest = 0.97 if place == len(heights) - 1 else heights[place + 1] - least
        heights[place] = min(heights[place], highest)
    for height, (_, policy, said) in zip(heights, sorted(names), strict=True):
        title = POLICIES[policy].title
        axes.text(1.02, height, title, color=COLOURS[policy], transform=axes.transAxes, weight="bold", va="center")
        if said:
            axes.text(1.02, height - 0.052, said, transform=axes.transAxes, va="center", fontsize=8.5)
