"""Measures of outcomes that are small enough to be worked out by hand, and what the command line writes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.harness.pages.blocks import blocks_of
from tests.harness.processes import REPOSITORY
from tests.load.simulate.__main__ import main
from tests.load.simulate.policies.table import POLICIES
from tests.load.simulate.report.markdown import duration
from tests.load.simulate.report.measures import jain, measure, size_class, spread, usage_by_part, waits_in_order
from tests.unit.load.simulate.running import job, run

TRACE = "user,gpu_num,node_num,interval,run_time\n" + "".join(
    f"user{number % 3},{gpus},{max(1, gpus // 8)},{60},{600 + 60 * number}\n"
    for number, gpus in enumerate((1, 8, 16, 2, 4, 8, 1, 16, 1, 1, 8, 2))
)


def test_measures_leave_out_the_first_and_the_last_tenth() -> None:
    """The span is 100 s, measured are 10 to 90: the second and the third job, which run one after the other."""
    jobs = [
        job(0, 0, 20, slots=2),
        job(1, 10, 30, slots=2, user="bob"),
        job(2, 50, 5, slots=1),
        job(3, 100, 1000, slots=2),
    ]
    measures = measure(run("fifo", jobs, nodes=(2,)))
    # Running: 2 slots until 50 and 1 slot until 55, of 2 slots in 80 s.
    assert measures.utilisation == pytest.approx((2 * 40 + 5) / 160)
    assert (measures.wait_s.count, measures.wait_s.mean, measures.wait_s.max) == (2, 5, 10)
    assert measures.slowdown.mean == pytest.approx((40 / 30 + 1) / 2)  # 5 s count as 10 s
    assert measures.fairness == pytest.approx((40 / 30 + 1) ** 2 / (2 * ((40 / 30) ** 2 + 1)))
    assert {name: of.mean for name, of in measures.wait_s_by_size.items()} == {"01": 0, "02-04": 10}
    assert {name: of.mean for name, of in measures.wait_s_by_user.items()} == {"ann": 0, "bob": 10}
    assert (measures.makespan_s, measures.never_started) == (1100, 0)


def test_gangs_that_wait_for_ever_count_until_the_end() -> None:
    stuck = [job(0, 0, 10), job(1, 1, 5, pods=4, priority=50), job(2, 2, 5, pods=4, priority=1), job(3, 9, 1)]
    held = measure(run("pods-in-order", stuck))
    assert held.never_started == 3
    assert held.wait_s.max == pytest.approx(9)  # the last thing to happen is the end at 10
    assert held.idle_bound == pytest.approx(3 * (8.1 - 1) / (4 * 7.2))


def test_usage_and_waits_are_those_of_the_whole_and_of_the_measured_time() -> None:
    outcome = run("fifo", [job(0, 0, 20, slots=2), job(1, 10, 30, slots=2), job(2, 100, 1)], nodes=(2,))
    assert usage_by_part(outcome, 4) == [1, 1, 0, 0]
    assert waits_in_order(outcome) == [10]


def test_percentiles_are_values_that_occur() -> None:
    of = spread([float(value) for value in range(1, 101)])
    assert (of.median, of.p90, of.p95, of.max, of.count) == (50, 90, 95, 100, 100)
    assert spread([]).count == 0


def test_jain_is_one_when_all_are_equal_and_a_fraction_when_one_has_all() -> None:
    assert jain([3.0, 3.0, 3.0]) == pytest.approx(1)
    assert jain([5.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)


@pytest.mark.parametrize(("slots", "name"), [(1, "01"), (3, "02-04"), (8, "05-08"), (64, "17-64"), (160, "65+")])
def test_sizes_have_classes(slots: int, name: str) -> None:
    assert size_class(slots) == name


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (59, "59 s"), (90, "1.5 min"), (7200, "2.0 h"), (172_800, "2.0 d")]
)
def test_durations_are_read_by_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_the_command_of_the_page_runs(tmp_path: Path) -> None:
    trace = tmp_path / "tiny.csv"
    trace.write_text(TRACE)
    block, _ = blocks_of(REPOSITORY / "docs/simulator.md")
    program, *arguments = shlex.split(block.text.splitlines()[-1])
    assert (program, arguments[:2]) == (".venv/bin/python", ["-m", "tests.load.simulate"])
    given = {"TRACE": str(trace), "DIR": str(tmp_path / "results")}
    assert main([given.get(word, word) for word in arguments[2:]]) == 0
    assert {path.name for path in (tmp_path / "results").iterdir()} >= {"tiny-0.9.json", "tiny-0.9.md"}


def test_the_command_writes_the_same_files_each_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "tiny.csv"
    trace.write_text(TRACE)
    for folder in ("once", "again"):
        assert main([str(trace), "--load", "0.9", "1.5", "--output", str(tmp_path / folder)]) == 0
    printed = capsys.readouterr().out
    once, again = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("once", "again"))
    assert once == again
    assert {"tiny-0.9.json", "tiny-0.9.md", "tiny-1.5.json", "tiny-1.5.md"} <= set(once)
    report = json.loads(once["tiny-1.5.json"])
    assert [one["policy"] for one in report["policies"]] == list(POLICIES)
    assert once["tiny-1.5.md"].decode() in printed


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(["missing.csv"], "missing.csv"), (["synthetic", "--load", "0"], "greater than zero")],
)
def test_the_command_refuses_what_it_cannot_simulate(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err
