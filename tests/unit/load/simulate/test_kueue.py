"""What Kueue's performance test is generated from becomes jobs, and is replayed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.load.simulate.kueue import REPLAYED, as_table, main, replayed
from tests.load.simulate.traces.kueue import Cohort, read_kueue

GENERATOR = """
cohorts:
- className: lab
  count: 2
  queuesSets:
  - className: team
    count: 2
    nominalQuota: 3
    borrowingLimit: 1
    reclaimWithinCohort: Any
    withinClusterQueue: LowerPriority
    workloadsSets:
    - count: 2
      creationIntervalMs: 1000
      workloads:
      - {className: short, runtimeMs: 500, priority: 10, request: 1}
      - {className: wide, runtimeMs: 4000, priority: 30, request: 4}
  - className: free
    count: 1
    nominalQuota: 2
    workloadsSets:
    - count: 1
      creationIntervalMs: 250
      workloads:
      - {className: short, runtimeMs: 500, priority: 10, request: 1}
"""


def _read(folder: Path, text: str) -> tuple[Cohort, ...]:
    path = folder / "generator.yaml"
    path.write_text(text)
    return read_kueue(path)


def test_each_cohort_is_a_pool_and_each_queue_a_user(tmp_path: Path) -> None:
    first, second = _read(tmp_path, GENERATOR)
    assert [one.trace.name for one in (first, second)] == ["lab-0", "lab-1"]
    assert first.slots == 3 + 3 + 2
    assert first.most_slots == {"team-0": 4, "team-1": 4}, "of the queue without a limit nothing is said"
    assert first.trace.jobs == second.trace.jobs
    found = [(one.user, one.submitted_s, one.run_s, one.slots, one.priority) for one in first.trace.jobs]
    assert found == [
        ("free-0", 0.25, 0.5, 1, 20),
        ("team-0", 1, 0.5, 1, 20),
        ("team-1", 1, 0.5, 1, 20),
        ("team-0", 2, 4, 4, 0),  # within a set one is created after the other
        ("team-1", 2, 4, 4, 0),
        ("team-0", 3, 0.5, 1, 20),
        ("team-1", 3, 0.5, 1, 20),
        ("team-0", 4, 4, 4, 0),
        ("team-1", 4, 4, 4, 0),
    ]
    assert first.classes == ("short", "short", "short", "wide", "wide", "short", "short", "wide", "wide")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("cohorts: []", "generator.yaml has no workloads"),
        ("topology: {name: a}\ncohorts: []", "unknown field `topology`"),
        (GENERATOR.replace("request: 4", 'request: "500m"'), "Expected `int`, got `str`"),
        (GENERATOR.replace("request: 4", "request: 4, podCount: 2"), "unknown field `podCount`"),
        ("a: [", "is not what Kueue generates simple workloads from"),
    ],
)
def test_what_has_no_counterpart_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        _read(tmp_path, text)


def test_a_queue_borrows_no_more_than_it_may(tmp_path: Path) -> None:
    """After two seconds, four of six slots run the first wide job of each queue where nothing limits them."""
    cohorts = _read(tmp_path, GENERATOR)
    limited = replayed(cohorts, REPLAYED["Resolute, priority"])
    free = replayed(cohorts, lambda _: REPLAYED["Resolute, priority"]({}))
    assert (limited.jobs, free.jobs) == (18, 18)
    # Of its four slots the wide job leaves its queue none, so that the short one waits until it has ended.
    assert limited.wait_s["short"] == pytest.approx((0 + 0 + 0 + 7 + 7) / 5)
    assert limited.total_s == free.total_s == 10.5


def test_more_important_workloads_take_the_place_of_others(tmp_path: Path) -> None:
    text = GENERATOR.replace("runtimeMs: 500", "runtimeMs: 9000").replace("borrowingLimit: 1", "borrowingLimit: 9")
    cohorts = _read(tmp_path, text)
    assert replayed(cohorts, REPLAYED["Resolute, priority"]).evictions == 0
    assert replayed(cohorts, REPLAYED["Resolute, preemption"]).evictions > 0


def test_all_policies_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "generator.yaml"
    path.write_text(GENERATOR)
    assert main([str(path)]) == 0
    printed = capsys.readouterr().out
    assert printed.strip() == as_table({title: replayed(read_kueue(path), make) for title, make in REPLAYED.items()})
    assert [line.split(" | ")[0].strip("| ") for line in printed.splitlines()[2:]] == list(REPLAYED)


def test_a_file_that_is_not_there_is_an_error_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([str(tmp_path / "nothing.yaml")])
    assert "nothing.yaml" in capsys.readouterr().err
