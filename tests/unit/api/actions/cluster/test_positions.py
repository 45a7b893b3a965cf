"""The order that positions say is that of a plain list, however often jobs are moved, and wherever to."""

from __future__ import annotations

import random
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from libs.job_rank import MICROSECOND
from services.api.actions.cluster.positions import insert_at

NOW = 1_800_000_000_000_000 * MICROSECOND
MOST_DIGITS = 63
"""Of the label of a pod."""


class Line:
    """Jobs with their positions, beside the plain list of them."""

    def __init__(self, positions: list[int]) -> None:
        self.plain = [f"j{number:03}" for number in range(len(positions))]
        self.positions = dict(zip(self.plain, sorted(positions), strict=True))
        self.changed = 0
        self.now = NOW

    def move(self, index: int, to: int) -> None:
        """Take the job at ``index`` out, and put it in at ``to`` of what is left."""
        job = self.plain.pop(index)
        self.now += MICROSECOND
        moved = insert_at([self.positions[other] for other in self.plain], to, now=self.now)
        for other, position in moved.others.items():
            self.positions[self.plain[other]] = position
        self.positions[job] = moved.position
        self.changed += len(moved.others)
        self.plain.insert(to, job)

    def in_order(self) -> list[str]:
        return sorted(self.plain, key=lambda job: (self.positions[job], job))

    def is_sound(self) -> bool:
        fits = all(position > 0 and len(str(position)) <= MOST_DIGITS for position in self.positions.values())
        return fits and self.in_order() == self.plain


moments = st.integers(0, 50).map(lambda number: NOW - number * MICROSECOND)
"""Close together, and often the same."""


@given(st.lists(moments, min_size=2, max_size=12), st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99))))
def test_the_order_is_that_of_a_plain_list(positions: list[int], moves: list[tuple[int, int]]) -> None:
    line = Line(positions)
    for index, to in moves:
        line.move(index % len(positions), to % len(positions))
        assert line.is_sound()


@given(st.integers(0, 2**30))
def test_what_is_submitted_later_stays_behind(seed: int) -> None:
    rng = random.Random(seed)
    line = Line([NOW - number * MICROSECOND for number in range(6)])
    for _ in range(200):
        line.move(rng.randrange(6), rng.randrange(6))
        assert max(line.positions.values()) <= line.now + 6 * MICROSECOND


def always_the_last(line: Line) -> None:
    line.move(len(line.plain) - 1, 1)


def between_two(line: Line) -> None:
    line.move(2, 1)


def to_the_front(line: Line) -> None:
    line.move(len(line.plain) - 1, 0)


def to_the_end(line: Line) -> None:
    line.move(0, len(line.plain) - 1)


def test_ten_thousand_moves_to_one_place_find_room() -> None:
    ways: list[Callable[[Line], None]] = [always_the_last, between_two, to_the_front, to_the_end]
    for move in ways:
        line = Line([NOW - number * 1_000_000 * MICROSECOND for number in range(100)])
        for count in range(10_000):
            move(line)
            if count % 500 == 0:
                assert line.is_sound()
        assert line.is_sound()
        assert line.changed <= 20_000, "a handful of others for each twenty moves"


def test_equal_positions_are_told_apart_when_somebody_comes_between() -> None:
    line = Line([NOW, NOW, NOW])
    line.move(2, 1)
    assert line.is_sound()
    assert len(set(line.positions.values())) == 3
