"""Draws the dashboard of pools as Grafana shows it, from what was recorded of a system (``dashboard_recording``).

Titles, units and places are those of the dashboard that is shipped; what changes there has to be recorded anew. The
colours are those of the other pictures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from typing import Any, Final

from deploy.documentation.dashboard_recording import DASHBOARD, ROOT, panels

PICTURES: Final = ROOT / "docs" / "pictures"
LEFT: Final = 24
GAP: Final = 12
FIRST: Final = 52
"""Where the first row of panels begins."""
COLUMN: Final = (720 - 2 * LEFT + GAP) / 24
"""Width of one of the 24 columns of a dashboard; a panel leaves a gap behind its last one."""
STAT_HEIGHT: Final = 68
PLOT: Final = (48, 40, 308, 116)
"""Left, top, right and bottom of the curves in a chart."""
TICK_S: Final = 300
LEGENDS: Final = 2
"""Side by side, each line of them ``LINE`` high."""
LINE: Final = 18
ROUND: Final = (1, 1.2, 1.6, 2, 4, 6, 8, 10)
"""Of a power of ten: where an axis may end, so that half of it is a short number too."""
DASHES: Final = ("none", "5 3", "1.5 2.5", "9 3 2 3")
"""Curves are told from one another without colours too."""
Values = Sequence[float | None]

DESCRIPTION: Final = (
    "Some minutes of a system with two pools of eight slots each: slots that are free and used, nodes, what waits and"
    " for which reason, and how often something starts."
)
STYLE: Final = """
    text { font: 11px Inter, system-ui, sans-serif; fill: var(--muted); }
    .title { font-size: 13px; font-weight: 600; fill: var(--text); }
    .panel { font-size: 12px; font-weight: 600; fill: var(--text); }
    .value { font-size: 24px; font-weight: 600; fill: var(--c3); }
    .end { text-anchor: end; }
    .middle { text-anchor: middle; }
    .page { fill: var(--sunken); stroke: var(--line); }
    .card { fill: var(--bg); stroke: var(--line); }
    .grid { stroke: var(--grid); }
    .curve { fill: none; stroke-width: 1.5; stroke-linejoin: round; }
    .s0 { stroke: var(--c1); } .s1 { stroke: var(--c2); } .s2 { stroke: var(--c3); } .s3 { stroke: var(--c4); }
  </style>"""


def dashboard_picture() -> str:
    """The picture, as SVG."""
    recording = json.loads((PICTURES / "pools.json").read_text())
    drawn = panels()
    rows = sorted({panel["gridPos"]["y"] for panel in drawn})
    recorded: Mapping[str, Mapping[str, Values]] = recording["panels"]
    heights = [
        max(_height(panel, recorded[panel["title"]]) for panel in drawn if panel["gridPos"]["y"] == row) for row in rows
    ]
    tops = [FIRST + sum(heights[:row]) + row * GAP for row in range(len(rows))]
    height = tops[-1] + heights[-1] + LEFT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" role="img" aria-labelledby="title desc">',
        '  <title id="title">The dashboard of pools and queue</title>',
        f'  <desc id="desc">{DESCRIPTION}</desc>',
        f"  <style>\n    {shared_colours()}{STYLE}",
        f'  <rect class="page" x="0.5" y="0.5" width="719" height="{height - 1}" rx="8"/>',
        f'  <text class="title" x="{LEFT}" y="36">{escape(json.loads(DASHBOARD.read_text())["title"])}</text>',
        f'  <text class="end" x="{720 - LEFT}" y="36">all pools, times in UTC</text>',
    ]
    for panel in drawn:
        place, series = panel["gridPos"], recorded[panel["title"]]
        row = rows.index(place["y"])
        parts += [
            f'  <g transform="translate({LEFT + place["x"] * COLUMN:g} {tops[row]})">',
            f'    <rect class="card" x="0.5" y="0.5" width="{place["w"] * COLUMN - GAP - 1:g}"'
            f' height="{heights[row] - 1}" rx="6"/>',
            f'    <text class="panel" x="14" y="23">{escape(panel["title"])}</text>',
            *(f"    {line}" for line in _content(panel, series, recording)),
            "  </g>",
        ]
    return "\n".join([*parts, "</svg>", ""])


def shared_colours() -> str:
    """The rules for light and dark pages that all pictures share."""
    text = (PICTURES / "architecture.svg").read_text()
    found = re.search(r"svg \{ --bg.*?\n    \}", text, re.DOTALL)
    assert found is not None
    return found[0]


def _height(panel: Mapping[str, Any], series: Mapping[str, Values]) -> int:
    return STAT_HEIGHT if panel["type"] == "stat" else PLOT[3] + 38 + LINE * -(-len(series) // LEGENDS)


def _content(panel: Mapping[str, Any], series: Mapping[str, Values], recording: Mapping[str, Any]) -> Iterator[str]:
    return _stat(series) if panel["type"] == "stat" else _chart(panel, series, recording)


def _stat(series: Mapping[str, Values]) -> Iterator[str]:
    latest = next((values[-1] for values in series.values()), None)
    yield f'<text class="value" x="14" y="54">{latest or 0:g}</text>'


def _chart(panel: Mapping[str, Any], series: Mapping[str, Values], recording: Mapping[str, Any]) -> Iterator[str]:
    left, top, right, bottom = PLOT
    count = max(len(values) for values in series.values())
    highest = _round_up(max(value or 0 for values in series.values() for value in values))
    unit = panel["fieldConfig"]["defaults"]["unit"]
    for part in (0, 0.5, 1):
        y = bottom - part * (bottom - top)
        yield f'<path class="grid" d="M{left} {y + 0.5:g} H{right}"/>'
        yield f'<text class="end" x="{left - 6}" y="{y + 4:g}">{_in_unit(part * highest, unit)}</text>'
    seconds = (count - 1) * recording["step"]
    for at in range(0, seconds + 1, TICK_S):
        x = left + (right - left) * at / seconds
        time = datetime.fromtimestamp(recording["begin"] + at, UTC)
        yield f'<text class="middle" x="{x:.0f}" y="{bottom + 17}">{time:%H:%M}</text>'
    for index, (legend, values) in enumerate(sorted(series.items(), reverse=True)):
        style = f'class="curve s{index}" stroke-dasharray="{DASHES[index]}"'
        yield f'<path {style} d="{_path(values, highest)}"/>'
        x, y = 14 + index % LEGENDS * 156, bottom + 41 + index // LEGENDS * LINE
        yield f'<path {style} d="M{x} {y - 4} h20"/><text x="{x + 27}" y="{y}">{escape(legend)}</text>'


def _path(values: Values, highest: float) -> str:
    """The curve of a series; what was not there is a gap in it."""
    left, top, right, bottom = PLOT
    points = [
        None
        if value is None
        else f"{left + (right - left) * at / (len(values) - 1):.1f} {bottom - (bottom - top) * value / highest:.1f}"
        for at, value in enumerate(values)
    ]
    return " ".join(
        f"{'M' if before is None else 'L'}{point}" for before, point in pairwise([None, *points]) if point is not None
    )


def _round_up(value: float) -> float:
    power = 10.0 ** (len(str(int(value))) - 1) if value >= 1 else 0.1 if value >= 0.1 else 0.01
    return next((part * power for part in ROUND if part * power >= value), 10 * power)


def _in_unit(value: float, unit: str) -> str:
    if unit == "percentunit":
        return f"{value * 100:g} %"
    return f"{value:g}/s" if unit == "ops" and value else f"{value:g}"
