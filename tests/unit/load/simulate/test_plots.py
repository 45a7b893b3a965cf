"""Plots are files that can be made again, byte for byte."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from msgspec.structs import replace

from tests.load.simulate.engine.outcome import Outcome
from tests.load.simulate.policies.table import POLICIES
from tests.load.simulate.report.curves import curves_of
from tests.load.simulate.report.measures import measure
from tests.load.simulate.report.plots import COLOURS, draw
from tests.load.simulate.report.report import report_of
from tests.unit.load.simulate.running import job, run

SVG = "{http://www.w3.org/2000/svg}svg"


def outcomes() -> list[Outcome]:
    jobs = [job(number, number * 30.0, 60 * (number % 5 + 1), pods=number % 3 + 1, slots=1) for number in range(20)]
    return [replace(run(name, jobs), policy=name) for name in POLICIES]


def test_the_same_outcomes_are_drawn_the_same(tmp_path: Path) -> None:
    drawn: list[dict[str, bytes]] = []
    for folder in (tmp_path / "once", tmp_path / "again"):
        folder.mkdir()
        of = outcomes()
        report = report_of(of[0].workload, [measure(one) for one in of])
        paths = draw(report, [curves_of(one) for one in of], folder, "tiny")
        drawn.append({path.name: path.read_bytes() for path in paths})
    assert drawn[0] == drawn[1]
    assert sorted(drawn[0]) == ["tiny-sizes.svg", "tiny-utilisation.svg", "tiny-waits.svg"]
    for name, image in drawn[0].items():
        assert ElementTree.fromstring(image).tag == SVG, name
        assert [policy for policy in POLICIES if COLOURS[policy].encode() not in image] == [], name


def test_curves_are_short_and_end_where_the_values_do() -> None:
    outcome = outcomes()[0]
    curves = curves_of(outcome)
    assert len(curves.utilisation) == 120
    assert all(0 <= share <= 1 for share in curves.utilisation)
    measured = measure(outcome).wait_s
    assert (len(curves.wait_s), curves.wait_s[-1]) == (measured.count, measured.max)
    assert curves.wait_s == sorted(curves.wait_s)
