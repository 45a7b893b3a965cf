"""Reads the form in which the traces of Helios and Philly are published with the interval between submissions.

Columns: ``interval``, seconds since the submission before; ``run_time``, seconds; ``gpu_num`` and ``node_num``, what
the job held; ``user``. A job on several nodes is a gang with one pod on each. How a job ended does not matter: it held
its GPUs until then.
"""

from __future__ import annotations

import math
from pathlib import Path

from tests.load.simulate.traces.job import Job, Trace
from tests.load.simulate.traces.rows import rows

COLUMNS = frozenset({"interval", "run_time", "gpu_num", "node_num", "user"})


def read_intervals(path: Path, name: str) -> Trace:
    """GPUs that the nodes of a job do not divide are rounded up to pods of one size.

    Raises ValueError with the line of a value that is no number.
    """
    jobs: list[Job] = []
    without_gpus = 0
    now = 0.0
    for row in rows(path):
        now += row.number("interval")
        gpus = int(row.number("gpu_num"))
        if not gpus:
            without_gpus += 1
            continue
        pods = max(1, int(row.number("node_num")))
        jobs.append(
            Job(
                number=len(jobs),
                user=row.text("user"),
                submitted_s=now,
                run_s=row.number("run_time"),
                pods=pods,
                slots_per_pod=math.ceil(gpus / pods),
            )
        )
    return Trace(name=name, jobs=tuple(jobs), without_gpus=without_gpus)
