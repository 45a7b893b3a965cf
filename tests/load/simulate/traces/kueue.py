"""Reads the file from which Kueue's performance test of its scheduler generates its queues and workloads.

Kueue counts quotas and knows no nodes. A cohort, whose queues lend each other what they do not use, is a pool of its
own here: one node with as many slots as its queues have together. A queue is a user. A workload is a job of one pod,
which is submitted when the test creates it; within a set they are created one after the other, each after the interval
of the set, and all sets at once. Priorities are turned over: here smaller is more important.

What a queue may borrow is a limit of slots at once for its user, where it is less than the whole cohort.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import yaml
from msgspec import Struct

from tests.load.simulate.traces.job import Job, NodeKind, Trace


class WorkloadClass(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    class_name: str
    runtime_ms: int
    priority: int
    request: int


class WorkloadSet(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    count: int
    creation_interval_ms: int
    workloads: tuple[WorkloadClass, ...]


class QueueSet(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    class_name: str
    count: int
    nominal_quota: int
    borrowing_limit: int | None = None
    reclaim_within_cohort: str = "Never"
    within_cluster_queue: str = "Never"
    workloads_sets: tuple[WorkloadSet, ...] = ()


class CohortSet(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    class_name: str
    count: int
    queues_sets: tuple[QueueSet, ...]


class Generator(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    cohorts: tuple[CohortSet, ...]


class Cohort(Struct, frozen=True, kw_only=True):
    """Queues that share what they have."""

    trace: Trace
    classes: tuple[str, ...]
    """Of each job of the trace: its class of workloads."""
    most_slots: dict[str, int]
    """Of users that may not hold all slots: how many they may hold at once."""

    @property
    def slots(self) -> int:
        return self.trace.kinds[0].slots


def read_kueue(path: Path) -> tuple[Cohort, ...]:
    """Raises ValueError for a file of another form, or with anything that has no counterpart here: topology, pods of
    which a workload has several, parts of a core."""
    try:
        generator = msgspec.convert(yaml.safe_load(path.read_text()), Generator)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise ValueError(f"{path.name} is not what Kueue generates simple workloads from: {error}") from error
    priorities = [
        workload.priority
        for cohort in generator.cohorts
        for queue in cohort.queues_sets
        for group in queue.workloads_sets
        for workload in group.workloads
    ]
    if not priorities:
        raise ValueError(f"{path.name} has no workloads")
    return tuple(
        _cohort(f"{kind.class_name}-{number}", kind, max(priorities))
        for kind in generator.cohorts
        for number in range(kind.count)
    )


def _cohort(name: str, kind: CohortSet, highest: int) -> Cohort:
    slots = sum(queue.nominal_quota * queue.count for queue in kind.queues_sets)
    created: list[tuple[float, str, WorkloadClass]] = []
    most_slots: dict[str, int] = {}
    for queues in kind.queues_sets:
        for number in range(queues.count):
            user = f"{queues.class_name}-{number}"
            created += [(at_s, user, one) for group in queues.workloads_sets for at_s, one in _created(group)]
            if queues.borrowing_limit is not None and queues.nominal_quota + queues.borrowing_limit < slots:
                most_slots[user] = queues.nominal_quota + queues.borrowing_limit
    created.sort(key=lambda one: (one[0], one[1], -one[2].priority))
    jobs = (
        Job(
            number=number,
            user=user,
            submitted_s=at_s,
            run_s=one.runtime_ms / 1000,
            slots_per_pod=one.request,
            priority=highest - one.priority,
        )
        for number, (at_s, user, one) in enumerate(created)
    )
    return Cohort(
        trace=Trace(name=name, jobs=tuple(jobs), kinds=(NodeKind(slots=slots),)),
        classes=tuple(one.class_name for _, _, one in created),
        most_slots=most_slots,
    )


def _created(group: WorkloadSet) -> list[tuple[float, WorkloadClass]]:
    """When each workload of the set is created, in seconds."""
    each = [one for _ in range(group.count) for one in group.workloads]
    return [((place + 1) * group.creation_interval_ms / 1000, one) for place, one in enumerate(each)]
