"""How the tables of queues are written.

A request is ``name slots[priority]`` with ``pods x slots`` for gangs, as in ``t1 2x4[50]``; ``@node`` runs there
already, each pod on its node. Requests are in the order of their jobs, oldest first, unless a job is named: requests of
one job share it as in ``a:job 1[50]``. Further words: ``not node,node`` for nodes that log policies exclude; ``in ns``
for what counts against the quota of that namespace, everything else counts against that of the pool; ``np`` for what
may not be preempted; ``mv`` for what may be moved, or was; ``leaving``; ``moving`` for places that are kept for it;
``by user`` for its share; ``under key,key`` for shared limits that it counts against; ``for 60`` for seconds that it
says it runs; ``ran 60`` for seconds that it has; ``expected 60`` for what it is expected to run; ``saved 60`` for
seconds since its last checkpoint; ``since 60`` for seconds that it is blocked; ``overtaken 3``;
``nominated node,node``; ``at 3`` for a job that was moved to where one would stand that was the fourth; ``back 2`` for
what was preempted twice, and ``ago 60`` for seconds since it has come back; ``on gpu=a100,zone=x`` for labels that its
nodes must have; ``cpu 4`` for cores of each pod, ``tolerates team`` for a taint; ``within rack`` and ``near rack`` for
a level of the topology that is required, or preferred; ``most 4`` for slots that the plan divides into pods of at most
four.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from libs.job_rank import MICROSECOND, position_at
from services.scheduler.plan.decisions import EndGrowth, Grow, Move, Plan
from services.scheduler.plan.nodes.amounts import amounts
from services.scheduler.plan.nodes.requirements import PodRequirements, SlotResource
from services.scheduler.plan.nodes.shapes import NodeShape, ShapedNode
from services.scheduler.plan.nodes.taints import DELETION_CANDIDATE, NodeTaint, Toleration
from services.scheduler.plan.planner import plan
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import (
    Growth,
    HeldAllocation,
    HourLimit,
    Maintenance,
    NodeSlots,
    PendingAllocation,
    Placement,
    PoolPolicy,
    PoolSnapshot,
    SlotLimit,
)
from services.scheduler.plan.topology.levels import TopologyRequest

START = datetime(2030, 1, 1, tzinfo=UTC)
NOW = START + timedelta(days=1)
GPU = SlotResource("nvidia.com/gpu")
_SECOND = 1_000_000 * MICROSECOND
_REQUEST = re.compile(r"(\w+)(?::(\w+))? (?:(\d+)x)?(\d+)(?:\[(\d+)\])?(?:@(\S+))?((?: .+)?)")
_ON_NODES = ("on", "cpu", "tolerates")
_WITH_VALUE = (
    "not",
    "in",
    "by",
    "under",
    "for",
    "expected",
    "ran",
    "saved",
    "since",
    "overtaken",
    "nominated",
    "at",
    "back",
    "ago",
    "within",
    "near",
    "most",
    *_ON_NODES,
)


class Case(NamedTuple):
    name: str
    cluster: Mapping[str, int]
    requests: str
    starts: str = ""
    """Those that start, in this order."""
    waits: Mapping[str, WaitReason] = {}
    places: Mapping[str, str] = {}
    """Expected nodes of some requests, one per pod; ``node:slots`` where that is said, too."""
    preempts: str = ""
    """Who is asked to leave, and for whom, as in ``a>b``; nothing after it: for nobody."""
    moves: str = ""
    """What is moved where, and for whom, as in ``a>b:n1,n2``."""
    moves_left: int = 0
    reserved: Mapping[str, str] = {}
    """Nodes that are kept for some requests."""
    policy: PoolPolicy = PoolPolicy()
    aux: int = 100
    max_slots: Mapping[str, int] = {}
    quota: int | None = None
    quotas: Mapping[str, int] = {}
    limits: Mapping[str, SlotLimit | HourLimit] = {}
    weights: Mapping[str, float] = {}
    past_use: Mapping[str, float] = {}
    unavailable: str = ""
    lent: Mapping[str, int] = {}
    kinds: Mapping[str, str] = {}
    """Of nodes of which more is known than slots."""
    details: Mapping[str, str] = {}
    """What some of those that wait are told beside the reason."""
    levels: str = ""
    """Of the topology, the widest first."""
    domains: Mapping[str, str] = {}
    """Of nodes, as in ``zone/rack``; "-" where it has no label."""
    maintenance: str = ""
    """Windows, as in ``a1,a2 60 120``: nodes, and from when to when in seconds from now."""
    growth: Growth | None = None
    grows: str = ""
    """What the cluster is asked for, as in ``x 2 pods 1 nodes``, with ``beside a1,a2`` for held places; or ``end
    x``, or ``gives up x``."""
    instead_of: str = ""
    """What docs/reference/scheduling.md has here, where this system decides otherwise, and why."""


def snapshot(case: Case) -> PoolSnapshot:
    held: list[HeldAllocation] = []
    moving: list[HeldAllocation] = []
    pending: list[PendingAllocation] = []
    for age, part in enumerate(filter(None, case.requests.split("; "))):
        one = _read(part, START + timedelta(seconds=age))
        if isinstance(one, PendingAllocation):
            pending.append(one)
        else:
            (moving if part.endswith(" moving") else held).append(one)
    return PoolSnapshot(
        nodes=tuple(
            NodeSlots(
                name=name,
                slots=slots,
                lent=case.lent.get(name, 0),
                max_aux=case.aux,
                available=name not in case.unavailable.split(","),
                shaped=_shaped(name, slots, case.kinds[name]) if name in case.kinds else None,
                domains=tuple(case.domains[name].replace("-", "").split("/")) if name in case.domains else (),
            )
            for name, slots in case.cluster.items()
        ),
        held=tuple(held),
        pending=tuple(pending),
        moving=tuple(moving),
        moves_left=case.moves_left,
        max_slots_by_job=case.max_slots,
        quota_slots=case.quota,
        quota_by_namespace=case.quotas,
        limits=case.limits,
        weights=case.weights,
        past_use=case.past_use,
        policy=case.policy,
        growth=case.growth,
        maintenance=tuple(_window(text) for text in filter(None, case.maintenance.split("; "))),
        levels=tuple(case.levels.split()),
        now=NOW,
    )


def _window(text: str) -> Maintenance:
    nodes, starts, ends = text.split()
    return Maintenance(
        nodes=frozenset(nodes.split(",")),
        starts_at=NOW + timedelta(seconds=int(starts)),
        ends_at=NOW + timedelta(seconds=int(ends)),
        text=f"{nodes} from {starts} to {ends}",
    )


def _shaped(name: str, slots: int, kind: str) -> ShapedNode:
    words = kind.split()
    said = {word: words[index + 1] for index, word in enumerate(words) if word in ("cpu", "taint", "foreign")}
    has = {GPU.name: 0 if "claims" in words else slots, "cpu": int(said.get("cpu", 64)) * 1000, "pods": 110}
    shape = NodeShape(
        labels=tuple(sorted(_labels(",".join(word for word in words if "=" in word)))),
        taints=(
            *((NodeTaint(said["taint"]),) if "taint" in said else ()),
            *((NodeTaint(DELETION_CANDIDATE, "", "PreferNoSchedule"),) if "candidate" in words else ()),
        ),
        unschedulable="cordoned" in words,
        ready="unready" not in words,
        allocatable=amounts(has),
        offers_claims_only="claims" in words,
    )
    return ShapedNode(name=name, shape=shape, foreign=amounts({"cpu": int(said.get("foreign", 0)) * 1000}))


def _labels(text: str) -> list[tuple[str, str]]:
    return [(key, value) for key, _, value in (each.partition("=") for each in text.split(",") if each)]


def _needs(said: Mapping[str, str], slots: int) -> PodRequirements | None:
    if not said.keys() & set(_ON_NODES):
        return None
    return PodRequirements(
        node_selector=tuple(sorted(_labels(said.get("on", "")))),
        tolerations=(Toleration(said["tolerates"], "Exists"),) if "tolerates" in said else (),
        requests=amounts({GPU.name: slots, "cpu": int(said.get("cpu", 0)) * 1000}),
        slot=GPU if slots else None,
    )


def _topology(said: Mapping[str, str]) -> TopologyRequest | None:
    level = said.get("within") or said.get("near")
    return TopologyRequest(level, required="within" in said) if level else None


def _read(part: str, at: datetime) -> HeldAllocation | PendingAllocation:
    matched = _REQUEST.fullmatch(part)
    assert matched, part
    name, job, pods, slots, priority, nodes, rest = matched.groups(default="")
    words = rest.split()
    said = {word: words[index + 1] for index, word in enumerate(words) if word in _WITH_VALUE}
    flags = {
        word for index, word in enumerate(words) if word not in said and (not index or words[index - 1] not in said)
    }
    assert flags <= {"np", "mv", "leaving", "moving"}, flags
    most = int(said.get("most", 0))
    each = 1 if most and not nodes else int(slots)
    common: dict[str, Any] = {
        "allocation": name,
        "job": job or name,
        "namespace": said.get("in", ""),
        "limits": tuple(filter(None, said.get("under", "").split(","))),
        "share": said.get("by", ""),
        "priority": int(priority or 42),
        "submitted_at": START if job else at,
        "requested_at": NOW - timedelta(seconds=int(said.get("ago", 0))) if "back" in said else at,
        "position": position_at(START) + int(float(said["at"]) * _SECOND) if "at" in said else None,
        "preemptible": "np" not in flags,
        "topology": _topology(said),
        "most_per_pod": most,
    }
    if nodes:
        started_at = NOW - timedelta(seconds=int(said.get("ran", 3600)))
        return HeldAllocation(
            **common,
            pods=tuple((node, each) for node in nodes.split(",")),
            leaving="leaving" in flags,
            movable="mv" in flags,
            blocked_nodes=_excluded(said),
            started_at=started_at,
            saved_at=NOW - timedelta(seconds=int(said["saved"])) if "saved" in said else None,
            ends_at=NOW + timedelta(seconds=int(said["for"])) if "for" in said else None,
            expected=timedelta(seconds=int(said["expected"])) if "expected" in said else None,
            needs=_needs(said, each),
        )
    return PendingAllocation(
        **common,
        pods=(1,) * int(slots) if most else (each,) * int(pods or 1),
        blocked_nodes=_excluded(said),
        needs=_needs(said, each),
        runs_for=timedelta(seconds=int(said["for"])) if "for" in said else None,
        expected=timedelta(seconds=int(said["expected"])) if "expected" in said else None,
        nominated=tuple(Placement(node, each) for node in said.get("nominated", "").split(",") if node),
        blocked_at=NOW - timedelta(seconds=int(said["since"])) if "since" in said else None,
        overtaken=int(said.get("overtaken", 0)),
        preempted=int(said.get("back", 0)),
        moved="mv" in flags,
    )


def _in_words(growth: Grow | EndGrowth | None) -> str:
    match growth:
        case None:
            return ""
        case EndGrowth():
            return f"{'gives up' if growth.gave_up else 'end'} {growth.allocation}"
        case Grow():
            held = ",".join(sorted(place.node for place in growth.places))
            said = f"{growth.allocation} {growth.pods} pods {growth.nodes} nodes"
            return f"{said} beside {held}" if held else said


def _excluded(said: Mapping[str, str]) -> frozenset[str]:
    return frozenset(said["not"].split(",")) if "not" in said else frozenset()


def _nodes_of(move: Move) -> str:
    return ",".join(place.node for place in move.placements)


def check(case: Case) -> Plan:
    """Plan the case, and compare with what it says."""
    made = plan(snapshot(case))
    starts = {start.allocation: start for start in made.starts}
    waits = {wait.allocation: wait.reason for wait in made.waits}
    assert list(starts) == case.starts.split()
    assert sorted(f"{one.allocation}>{one.makes_room_for}" for one in made.preempted) == sorted(case.preempts.split())
    moves = (f"{one.allocation}>{one.makes_room_for}:{_nodes_of(one)}" for one in made.moved)
    assert sorted(moves) == sorted(case.moves.split())
    assert {name: waits.get(name) for name in case.waits} == case.waits
    details = {wait.allocation: wait.detail for wait in made.waits}
    assert {name: details.get(name) for name in case.details} == case.details
    for name, nodes in case.places.items():
        placed = [(place.node, place.slots) for place in starts[name].placements]
        assert [f"{node}:{slots}" if ":" in nodes else node for node, slots in placed] == nodes.split()
    assert _in_words(made.growth) == case.grows
    reserved = {one.allocation: " ".join(place.node for place in one.reserved) for one in made.blocked}
    assert {name: reserved.get(name, "") for name in case.reserved} == case.reserved
    return made
