"""Draws who had which slots of a pool from when to when: one row per slot, time from left to right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

from deploy.documentation.queue_pictures.virtual_pool import Run

ROW: Final = 13
"""Height of a slot."""
NODE_GAP: Final = 6
AXIS: Final = 26
"""Below the rows: the hours."""


class Timeline:
    """One pool; ``left`` and ``top`` are where its slots begin, ``width`` is that of ``hours``."""

    def __init__(
        self, runs: Sequence[Run], nodes: Mapping[str, int], *, left: float, top: float, width: float, hours: int
    ) -> None:
        self._runs = runs
        self._nodes = nodes
        self._left, self._top, self._width = left, top, width
        self._hours = hours

    @property
    def bottom(self) -> float:
        """Of the slots."""
        return self.row(sum(self._nodes.values()) - 1) + ROW

    def x(self, minute: float) -> float:
        return self._left + self._width * minute / (self._hours * 60)

    def row(self, slot: int) -> float:
        """Where that slot begins, counted over all nodes."""
        before = 0
        for gaps, slots in enumerate(self._nodes.values()):
            before += slots
            if slot < before:
                return self._top + slot * ROW + gaps * NODE_GAP
        raise IndexError(slot)

    def lines(self, colours: Mapping[str, str]) -> Iterator[str]:
        """``colours``: of users, as classes."""
        first = 0
        for slots in self._nodes.values():
            size = f'width="{self._width:g}" height="{slots * ROW}"'
            yield f'<rect class="back" x="{self._left:g}" y="{self.row(first):g}" {size}/>'
            first += slots
        yield from self._axis()
        for run in self._runs:
            yield from self._bar(run, colours[run.job.user])

    def _axis(self) -> Iterator[str]:
        for hour in range(self._hours + 1):
            x = self.x(hour * 60)
            yield f'<path class="grid" d="M{x:.1f} {self._top:g} V{self.bottom + 4:g}"/>'
            if hour % 2 == 0 and hour < self._hours:
                text = f"{hour} h" if hour else "0"
                yield f'<text class="middle small" x="{x:.1f}" y="{self.bottom + 17:g}">{text}</text>'

    def _bar(self, run: Run, colour: str) -> Iterator[str]:
        """A job's slots of a node as one box for each stretch of neighbours, its name in the largest."""
        boxes = list(_stretches(run.slots))
        largest = max(boxes, key=len)
        x, width = self.x(run.begin) + 1, self.x(run.end) - self.x(run.begin) - 2
        style = f"{colour} left" if run.is_preempted else colour
        for box in boxes:
            y, height = self.row(box[0]) + 1, len(box) * ROW - 2
            yield f'<rect class="{style}" x="{x:.1f}" y="{y:g}" width="{width:.1f}" height="{height}" rx="2"/>'
            if box is largest:
                middle = y + height / 2 + 4
                yield f'<text class="bar" x="{x + width / 2:.1f}" y="{middle:g}">{escape(run.job.name)}</text>'


def _stretches(slots: Sequence[int]) -> Iterator[list[int]]:
    found: list[int] = []
    for slot in sorted(slots):
        if found and slot != found[-1] + 1:
            yield found
            found = []
        found.append(slot)
    yield found
