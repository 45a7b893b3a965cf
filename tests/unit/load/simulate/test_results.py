"""All simulations of the page of results are run, each once, and put into the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.scheduler.plan.snapshot import PoolPolicy
from tests.harness.processes import REPOSITORY
from tests.load.simulate import matrix, page
from tests.load.simulate.cluster import SimulatedNode, Workload
from tests.load.simulate.engine.simulation import simulate
from tests.load.simulate.matrix import COMPARED, SIMULATED, Simulated, result_path, results_of, runs_of
from tests.load.simulate.policies.foreseeing import Foreseeing
from tests.load.simulate.policies.table import POLICIES
from tests.load.simulate.traces.job import Trace
from tests.unit.load.simulate.running import job

HEADER = "user,gpu_num,node_num,interval,run_time"
PAGE = """# Results

![Waits](plots/tiny-0.9-sizes.svg)

<!-- tiny 0.9 -->
<!-- end -->

Text.

<!-- estimates all -->
old
<!-- end -->
"""


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    rows = [f"{'ab'[number % 2]},{(number % 3 + 1) * 2},1,30,{200 + 100 * (number % 7)}" for number in range(120)]
    (tmp_path / "tiny.csv").write_text("\n".join([HEADER, *rows]))
    return tmp_path


@pytest.fixture(autouse=True)
def simulated(monkeypatch: pytest.MonkeyPatch) -> Simulated:
    one = Simulated(name="tiny", trace="tiny.csv", load=0.9, policies=("fifo", "easy", "resolute"), cuts=2)
    monkeypatch.setattr(matrix, "SIMULATED", (one,))
    monkeypatch.setattr(page, "SIMULATED", (one,))
    monkeypatch.setattr(page, "IN_PLOTS", ("fifo", "resolute"))
    monkeypatch.setattr(matrix, "FORESEEN_EVERY", 1)
    return one


def test_what_is_compared_is_run_on_several_cuts(simulated: Simulated) -> None:
    assert list(runs_of(simulated)) == [("fifo", 0), ("easy", 0), ("resolute", 0), ("easy", 1), ("resolute", 1)]


def test_results_become_tables_and_plots(traces: Path, tmp_path: Path, simulated: Simulated) -> None:
    results, text = tmp_path / "results", tmp_path / "docs" / "page.md"
    assert matrix.main([str(traces), str(results)]) == 0
    text.parent.mkdir()
    text.write_text(PAGE)
    assert page.main([str(results), str(text)]) == 0
    written = text.read_text()
    assert "\n\nText.\n\n" in written
    assert "old" not in written
    [mean] = [line for line in written.splitlines() if line.startswith("| mean | ")]
    both = [results_of(results, simulated, policy) for policy in COMPARED]
    used = [sum(one.measures.utilisation for one in runs) / 2 for runs in both]
    assert mean.startswith("| mean | " + " | ".join(f"{value:.1%}" for value in used) + " | ")
    assert written.count("\n| 1 | ") == written.count("\n| 2 | ") == 1, "a row for each cut"
    for title in ("FIFO", "EASY backfill", "Resolute, priority"):
        assert written.count(f"| {title} | ") == 3, "overview, sizes, users"
    [estimates] = [line for line in written.splitlines() if line.startswith("| tiny 0.9 | ")]
    first = results_of(results, simulated, "resolute")[0].measures
    assert f" | {first.foreseen_error_s.count} | " in estimates
    assert {path.name for path in (text.parent / "plots").iterdir()} == {"tiny-0.9-sizes.svg"}
    assert page.main([str(results), str(text)]) == 0
    assert text.read_text() == written, "once more, the same"


def test_what_has_its_result_is_not_run_again(traces: Path, tmp_path: Path, simulated: Simulated) -> None:
    results = tmp_path / "results"
    assert matrix.main([str(traces), str(results)]) == 0
    kept = result_path(results, simulated, "fifo", 0)
    kept.write_text("kept")
    result_path(results, simulated, "easy", 1).unlink()
    assert matrix.main([str(traces), str(results), "--only", "tiny"]) == 0
    assert kept.read_text() == "kept"
    assert len(results_of(results, simulated, "easy")) == 2


def test_starts_are_foreseen_by_playing_the_queue_forward() -> None:
    """Run times vary, so that what is foreseen by the median of the past is not what happens."""
    jobs = [job(0, 0, 100, slots=2), job(1, 0, 50, slots=2), job(2, 10, 40, slots=2), job(3, 20, 1)]
    work = Workload(trace=Trace(name="tiny", jobs=tuple(jobs)), nodes=(SimulatedNode(slots=2),))
    outcome = simulate("resolute", Foreseeing(PoolPolicy(), every=2), work)
    assert [one.started_s for one in outcome.jobs] == [0, 100, 150, 190]
    # An hour is expected of the first, and of those after it: nobody has ended yet when they come.
    assert [one.foreseen_s for one in outcome.jobs] == [None, None, 7200, None]


def test_the_page_has_tables_and_plots_of_what_it_names() -> None:
    text = (REPOSITORY / "docs/simulation-results.md").read_text()
    shown = 0
    for one in SIMULATED:
        part = text.partition(f"<!-- {one.name} {one.load:g} -->")[2].partition("<!-- end -->")[0]
        shown += bool(part)
        for policy in COMPARED if part else ():
            assert f"| {POLICIES[policy].title} | " in part, (one.name, one.load, policy)
    assert shown > 1
    plots = {f"{name.replace(' ', '-')}-{plot}.svg" for name, plots in page.plots_of(text).items() for plot in plots}
    assert {path.name for path in (REPOSITORY / "docs" / page.PLOTTED).iterdir()} == plots
