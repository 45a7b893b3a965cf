"""The pictures of ``docs/scheduling.md``: the same jobs under four policies, and who may pass a large job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from html import escape
from typing import Final

from deploy.documentation.dashboard_picture import shared_colours
from deploy.documentation.queue_pictures.timeline import AXIS, ROW, Timeline
from deploy.documentation.queue_pictures.virtual_pool import PicturedJob, Run, play
from services.scheduler.plan.snapshot import PoolPolicy

_WIDTH: Final = 720
_LEFT: Final = 24
_H: Final = 60
_PREEMPTS: Final = timedelta(minutes=1)

ONE_NODE: Final = {"node": 8}
EVERYBODY: Final = (
    *(PicturedJob(name=f"a{number}", user="ann", slots=2, takes=3 * _H) for number in range(1, 7)),
    *(PicturedJob(name=f"b{number}", user="ben", slots=2, takes=2 * _H, submitted=30) for number in (1, 2)),
    PicturedJob(name="c", user="cleo", slots=4, takes=90, submitted=_H, priority=10),
)
POLICIES: Final[Mapping[str, tuple[str, PoolPolicy]]] = {
    "fifo": ("the oldest first, whatever its priority", PoolPolicy(queue="fifo")),
    "priority": ("c is urgent: it gets what comes free first", PoolPolicy()),
    "priority, preemption": (
        "two trials leave for c at once",
        PoolPolicy(preemption=True, min_runtime=_PREEMPTS),
    ),
    "fair_share": (
        "users hold the same, as far as they want it",
        PoolPolicy(queue="fair_share", min_runtime=_PREEMPTS),
    ),
}

TWO_NODES: Final = {"node-1": 4, "node-2": 4}
A_LARGE_ONE: Final = (
    PicturedJob(name="a", user="ann", slots=4, takes=2 * _H, time_limit=2 * _H),
    PicturedJob(name="b", user="ann", slots=2, takes=5 * _H, time_limit=5 * _H),
    PicturedJob(name="large", user="ben", slots=4, pods=2, takes=3 * _H, submitted=5),
    PicturedJob(name="d", user="cleo", slots=1, takes=4 * _H, submitted=15, time_limit=4 * _H),
    PicturedJob(name="e", user="cleo", slots=1, takes=_H, submitted=20),
    PicturedJob(name="f", user="cleo", slots=3, takes=150, submitted=30, time_limit=150),
)
_STYLE: Final = """
    text { font: 12px Inter, system-ui, sans-serif; fill: var(--muted); }
    .title { font-size: 13px; font-weight: 600; fill: var(--text); }
    .name { font-weight: 600; fill: var(--text); }
    .small { font-size: 11px; }
    .middle { text-anchor: middle; }
    .end { text-anchor: end; }
    .bar { font-size: 11px; font-weight: 600; text-anchor: middle; fill: var(--bg); }
    .page { fill: var(--bg); stroke: var(--line); }
    .back { fill: var(--sunken); }
    .grid { stroke: var(--line); }
    .kept { fill: none; stroke: var(--c2); stroke-width: 1.5; stroke-dasharray: 4 3; }
    .left { stroke: var(--text); stroke-width: 1.5; stroke-dasharray: 3 2; }
    .c1 { fill: var(--c1); } .c2 { fill: var(--c2); } .c3 { fill: var(--c3); }
  </style>"""
_COLOURS: Final = {"ann": "c1", "ben": "c2", "cleo": "c3"}
"""Of users, as classes."""


def policies_picture() -> str:
    """Four timelines, two by two, as SVG."""
    width, hours = (_WIDTH - 3 * _LEFT) / 2, 8
    height_each = 26 + 8 * ROW + AXIS + 18
    lines = [
        *_legend(("ann", "six jobs of 2 slots for 3 h"), ("ben", "two for 2 h"), ("cleo", "one of 4 slots, urgent"))
    ]
    for number, (name, (says, policy)) in enumerate(POLICIES.items()):
        left = _LEFT + number % 2 * (width + _LEFT)
        top = 78 + number // 2 * height_each
        runs = play(EVERYBODY, ONE_NODE, policy)
        timeline = Timeline(runs, ONE_NODE, left=left, top=top + 26, width=width, hours=hours)
        lines += [
            f'<text x="{left:g}" y="{top + 12}"><tspan class="name">{escape(name)}</tspan>  {escape(says)}</text>',
            *timeline.lines(_COLOURS),
        ]
    title = "The same jobs under four policies"
    return _picture(title, _POLICIES_SAY, lines, height=78 + 2 * height_each)


def reservation_picture() -> str:
    """One timeline of two nodes, and under it what the jobs declare, as SVG."""
    top, hours = 98, 9
    runs = play(A_LARGE_ONE, TWO_NODES, PoolPolicy())
    timeline = Timeline(runs, TWO_NODES, left=_LEFT + 52, top=top, width=_WIDTH - 2 * _LEFT - 52, hours=hours)
    begins = begin_of(runs, "large")
    kept = timeline.x(begins)
    lines = [
        *_legend(
            ("ann", "a, b: limits of 2 h and 5 h"),
            ("ben", "large: all 8 slots"),
            ("cleo", "d, f: 4 h and 2.5 h; e: no limit"),
        ),
        *(
            f'<text class="end small" x="{_LEFT + 44}" y="{timeline.row(slot) + 2 * ROW + 4:g}">{node}</text>'
            for node, slot in (("node-1", 0), ("node-2", 4))
        ),
        *timeline.lines(_COLOURS),
        f'<path class="kept" d="M{kept:.1f} {top - 8} V{timeline.bottom + 4:g}"/>',
        f'<text class="small middle" x="{kept:.1f}" y="{top - 12}">kept for large from here on</text>',
    ]
    return _picture("Who may pass a large job", _RESERVATION_SAYS, lines, height=int(timeline.bottom) + AXIS + 12)


_POLICIES_SAY: Final = (
    "A pool of eight slots. Ann has six jobs there at first, Ben brings two after half an hour, and Cleo an urgent one"
    " after an hour. First in, first out: Cleo waits for all others. By priority: she waits until Ann's first jobs end."
    " With preemption: two of Ann's jobs leave at once. By fair share: two of Ann's leave for Ben, and Cleo is next."
)
_RESERVATION_SAYS: Final = (
    "Two nodes of four slots. A large job needs all of both: they are kept for it from the moment at which the last of"
    " those that run has to end. Jobs with a time limit that ends before start in the gap; one without waits until the"
    " large one has started."
)


def begin_of(runs: Sequence[Run], name: str) -> int:
    """When that job starts."""
    return min(run.begin for run in runs if run.job.name == name)


def _legend(*users: tuple[str, str]) -> Iterator[str]:
    for number, (user, has) in enumerate(users):
        x = _LEFT + number * (_WIDTH - 2 * _LEFT) / len(users)
        yield f'<rect class="{_COLOURS[user]}" x="{x:g}" y="48" width="10" height="10" rx="2"/>'
        yield f'<text x="{x + 16:g}" y="57"><tspan class="name">{user}</tspan>  {escape(has)}</text>'


def _picture(title: str, description: str, lines: Sequence[str], *, height: int) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img"'
            ' aria-labelledby="title desc">',
            f'  <title id="title">{escape(title)}</title>',
            f'  <desc id="desc">{escape(description)}</desc>',
            f"  <style>\n    {shared_colours()}{_STYLE}",
            f'  <rect class="page" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="8"/>',
            f'  <text class="title" x="{_LEFT}" y="32">{escape(title)}</text>',
            *(f"  {line}" for line in lines),
            "</svg>",
            "",
        ]
    )
