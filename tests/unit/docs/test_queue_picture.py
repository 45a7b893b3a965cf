"""The queue that the documents show: the planner gives each job of it the reason that stands there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest
from msgspec import Struct

from libs.cluster.resolution import split_slots
from services.scheduler.plan.planner import plan
from services.scheduler.plan.snapshot import HeldAllocation, NodeSlots, PendingAllocation, PoolPolicy, PoolSnapshot

SVG: Final = "{http://www.w3.org/2000/svg}"
PICTURE: Final = ElementTree.parse(Path(__file__).resolve().parents[3] / "docs" / "pictures" / "queue.svg").getroot()
NODE_SLOTS: Final = 8
DRAINING: Final = "gpu-03"
TEAM: Final = "team-b"
QUOTA: Final = 4
"""Slots of the workspace ``team-b``."""
SUBMITTED: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Row(Struct, frozen=True, kw_only=True):
    number: str
    name: str
    namespace: str
    max_slots: int | None
    priority: int
    acquired: int
    needed: int
    reason: str


def row_of(job: ElementTree.Element) -> Row:
    said = {str(text.get("class")): text.text or "" for text in job.iter(f"{SVG}text")}
    more = next((more.text or "" for more in job.iter(f"{SVG}tspan")), "")
    acquired, _, needed = said["slots"].partition("/")
    return Row(
        number=said["number"],
        name=said["name"],
        namespace=TEAM if TEAM in more else "",
        max_slots=int(more.rpartition(" ")[2]) if more.startswith("max_slots") else None,
        priority=int(said["priority"]),
        acquired=int(acquired),
        needed=int(needed),
        reason=said.get("reason", ""),
    )


def of_class(name: str) -> list[ElementTree.Element]:
    return [group for group in PICTURE.iter(f"{SVG}g") if group.get("class") == name]


ROWS: Final = [row_of(job) for job in of_class("job")]
HOLDERS: Final = {
    str(node.get("id")): [text.text for text in node.iter(f"{SVG}text") if text.get("class") == "holder"]
    for node in of_class("node")
}


def pods_of(row: Row) -> tuple[tuple[str, int], ...]:
    return tuple((node, held.count(row.number)) for node, held in HOLDERS.items() if row.number in held)


def pending(row: Row) -> PendingAllocation:
    split = split_slots(row.needed - row.acquired, NODE_SLOTS)
    at = SUBMITTED + timedelta(minutes=int(row.number))
    return PendingAllocation(
        allocation=row.number,
        job=row.number,
        pods=(split.slots_per_pod,) * split.num_pods,
        priority=row.priority,
        submitted_at=at,
        requested_at=at,
        namespace=row.namespace,
    )


def snapshot() -> PoolSnapshot:
    return PoolSnapshot(
        nodes=tuple(NodeSlots(name=name, slots=NODE_SLOTS, max_aux=0, available=name != DRAINING) for name in HOLDERS),
        held=tuple(
            HeldAllocation(allocation=f"{row.number}-held", job=row.number, pods=pods_of(row), namespace=row.namespace)
            for row in ROWS
            if row.acquired
        ),
        pending=tuple(pending(row) for row in ROWS if row.needed > row.acquired),
        max_slots_by_job={row.number: row.max_slots for row in ROWS if row.max_slots is not None},
        quota_by_namespace={TEAM: QUOTA},
        policy=PoolPolicy(larger_priority_first=True),
    )


def test_the_planner_gives_the_reasons_of_the_picture() -> None:
    reasons = {one.allocation: str(one.reason) for one in plan(snapshot()).waits}
    assert reasons == {row.number: row.reason for row in ROWS if row.needed > row.acquired}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_job_has_as_many_slots_on_the_nodes_as_in_the_list(row: Row) -> None:
    assert sum(slots for _, slots in pods_of(row)) == row.acquired


def test_the_jobs_are_in_the_order_of_the_queue() -> None:
    assert [row.number for row in ROWS] == [str(place) for place in range(len(ROWS))]
    assert [row.priority for row in ROWS] == sorted((row.priority for row in ROWS), reverse=True)
