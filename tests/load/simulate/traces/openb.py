"""Reads the pods and nodes of Alibaba's ``openb`` traces (clusterdata, cluster-trace-gpu-v2023).

Pods: ``num_gpu``, ``gpu_milli`` (thousandths of one GPU), ``gpu_spec`` (models that will do, separated by ``|``), and
``creation_time``, ``scheduled_time`` and ``deletion_time`` in seconds. Nodes: ``gpu`` and ``model``. Each pod is a job
of one pod. A part of a GPU is rounded up to a whole one. The data name no users: the class of service (``qos``) stands
for one.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.load.simulate.traces.job import Job, NodeKind, Trace
from tests.load.simulate.traces.rows import Row, rows

POD_COLUMNS = frozenset({"num_gpu", "gpu_milli", "gpu_spec", "qos", "creation_time", "scheduled_time", "deletion_time"})


def read_openb(pods: Path, nodes: Path, name: str) -> Trace:
    """Pods that were never scheduled have no run time, and are left out.

    Raises ValueError with the line of a value that is no number.
    """
    ran: list[Row] = []
    without_gpus = never_ran = 0
    for row in rows(pods):
        if not row.number("num_gpu"):
            without_gpus += 1
        elif not row.text("scheduled_time"):
            never_ran += 1
        else:
            ran.append(row)
    ran.sort(key=lambda row: row.number("creation_time"))
    first_s = ran[0].number("creation_time") if ran else 0.0
    return Trace(
        name=name,
        jobs=tuple(_job(number, row, first_s) for number, row in enumerate(ran)),
        without_gpus=without_gpus,
        never_ran=never_ran,
        kinds=_kinds(nodes),
    )


def _job(number: int, row: Row, first_s: float) -> Job:
    return Job(
        number=number,
        user=row.text("qos"),
        submitted_s=row.number("creation_time") - first_s,
        run_s=max(0.0, row.number("deletion_time") - row.number("scheduled_time")),
        slots_per_pod=int(row.number("num_gpu")),
        models=frozenset(filter(None, row.text("gpu_spec").split("|"))),
    )


def _kinds(nodes: Path) -> tuple[NodeKind, ...]:
    counted = Counter((int(row.number("gpu")), row.text("model")) for row in rows(nodes))
    return tuple(NodeKind(slots=slots, model=model, count=count) for (slots, model), count in sorted(counted.items()))
