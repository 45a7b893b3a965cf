"""Creating experiments in a system of its own, whose launcher stands still meanwhile."""

from __future__ import annotations

import uvloop

from tests.bench.creating import processor, stages
from tests.bench.result import Result
from tests.bench.system import BenchSystem, running_system


def measure(_: BenchSystem) -> list[Result]:
    with running_system() as system:
        return [*uvloop.run(stages.measure(system)), *uvloop.run(processor.measure(system))]
