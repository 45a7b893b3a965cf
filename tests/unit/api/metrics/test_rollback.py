"""Roll-back: the sequence of docs/reference/experiments.md 9.2, read column-wise, and what holds for any sequence."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from services.api.metrics.groups import kind_of
from services.api.metrics.rollback import StoredReport, find_position

# (group, run, step, total of batches afterwards, rows taken back); a checkpoint is no report and changes nothing.
SEQUENCE = [
    ("training", 0, 10, 10, 0),
    ("validation", 0, 10, 10, 0),
    ("training", 0, 20, 20, 0),
    ("validation", 0, 20, 20, 0),
    ("validation", 0, 30, 30, 0),
    ("training", 0, 25, 30, 0),
    ("validation", 1, 25, 25, 1),
    ("validation", 1, 30, 30, 0),
    ("training", 1, 30, 30, 0),
    ("training", 2, 27, 27, 2),
    ("validation", 3, 27, 27, 0),
    ("golabi", 3, 27, 27, 0),
    ("golabi", 3, 29, 29, 0),
    ("inference", 3, 28, 29, 0),
    ("inference", 4, 28, 28, 2),
]


@dataclass
class TrialRows:
    """What is stored of a trial, in memory."""

    rows: list[StoredReport] = field(default_factory=list)
    next_id: int = 1

    def report(self, group: str, run: int, step: int) -> int:
        """Returns how many rows were taken back."""
        position = find_position(self.rows, group=group, kind=kind_of(group), run=run, step=step)
        self.rows = [row for row in self.rows if row not in position.back]
        if position.existing is None:
            self.rows.append(StoredReport(id=self.next_id, run=run, group=group, kind=kind_of(group), step=step))
            self.next_id += 1
        return len(position.back)

    @property
    def total_batches(self) -> int:
        return max(row.step for row in self.rows)


def test_the_sequence_of_the_specification() -> None:
    trial = TrialRows()
    for group, run, step, total, back in SEQUENCE:
        assert (trial.report(group, run, step), trial.total_batches) == (back, total), (group, run, step)


def test_a_report_of_the_same_step_is_merged_with_the_row_that_stays() -> None:
    rows = [StoredReport(id=1, run=1, group="training", kind=kind_of("training"), step=5)]
    assert find_position(rows, group="training", kind=kind_of("training"), run=1, step=5).existing == rows[0]
    restarted = find_position(rows, group="training", kind=kind_of("training"), run=2, step=5)
    assert (restarted.existing, restarted.back) == (None, (rows[0],))


REPORTS = st.lists(
    st.tuples(st.sampled_from(["training", "validation", "mine", "other"]), st.integers(0, 1), st.integers(0, 6))
)


@given(REPORTS)
def test_at_most_one_row_per_group_and_step_and_no_older_run_beyond_a_report(
    reports: list[tuple[str, int, int]],
) -> None:
    trial, run = TrialRows(), 0
    for group, restart, step in reports:
        run += restart
        trial.report(group, run, step)
        steps = [(row.group, row.step) for row in trial.rows]
        assert len(steps) == len(set(steps))
        assert not [row for row in trial.rows if row.run < run and row.step > step]
