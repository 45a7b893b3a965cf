"""What people are told of an expected start: the instant, who is before it, and what it is expected by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from services.scheduler.plan.forecast.replay import ExpectedStart, Replay
from services.scheduler.plan.forecast.run_times import IN_WORDS, Knowledge
from services.scheduler.plan.ordering.ranking import ranking
from services.scheduler.plan.snapshot import PendingAllocation, PoolSnapshot

_ABOUT: Final = timedelta(minutes=1)
"""Instants that lie closer together are one to people."""


class ExpectedEnd(Struct, frozen=True):
    at: datetime
    known_from: Knowledge


class Ahead(NamedTuple):
    """What is before a request in its queue: other jobs, and slots that these want."""

    jobs: int
    slots: int


class StartEstimate(Struct, frozen=True, kw_only=True):
    allocation: str
    at: datetime | None
    """None where nothing that is expected leads to its start."""
    basis: str
    ahead: Ahead


def estimates_of(snapshot: PoolSnapshot, replay: Replay, ends: Mapping[str, ExpectedEnd]) -> tuple[StartEstimate, ...]:
    """The estimates that a finished ``replay`` of ``snapshot`` gives, by the order of the queue.

    ends  of what is held now, as the replay was told
    """
    starts = replay.starts
    found = []
    for request, ahead in _in_order(snapshot, starts):
        start = starts.get(request.allocation)
        found.append(
            StartEstimate(
                allocation=request.allocation,
                at=None if start is None else start.at,
                basis="" if start is None else _basis(start, ahead, ends, snapshot.now),
                ahead=ahead,
            )
        )
    return tuple(found)


def _in_order(snapshot: PoolSnapshot, starts: Mapping[str, ExpectedStart]) -> Iterable[tuple[PendingAllocation, Ahead]]:
    """Where shares decide, there is no order but that in which requests are expected to start."""
    rank = ranking(snapshot.policy)
    by_rank = sorted(snapshot.pending, key=rank)
    if snapshot.policy.queue in ("fair_share", "round_robin"):
        last = len(starts)
        by_rank.sort(key=lambda one: starts[one.allocation].number if one.allocation in starts else last)
    for lane in (True, False):
        jobs: dict[str, int] = {}
        slots = 0
        for request in by_rank:
            if bool(request.slots) is not lane:
                continue
            own = jobs.get(request.job, 0)
            yield request, Ahead(len(jobs) - (request.job in jobs), slots - own)
            if _waits_elsewhere(request, snapshot.now):
                continue
            jobs[request.job] = own + request.slots
            slots += request.slots


def _basis(start: ExpectedStart, ahead: Ahead, ends: Mapping[str, ExpectedEnd], now: datetime) -> str:
    parts = []
    if ahead.jobs:
        wanted = f", with {_count(ahead.slots, 'slot')}" if ahead.slots else ""
        parts.append(f"{_count(ahead.jobs, 'job')} before it in the queue{wanted}")
    known = [ends[name] for name in start.freed if name in ends]
    if known:
        last = max(known, key=lambda end: end.at)
        held = _count(sum(start.freed.values()), "slot") if ahead.slots or sum(start.freed.values()) else "room"
        several = f"{len(start.freed)} tasks that run now, the last of which"
        whom = "1 task that runs now, which" if len(start.freed) == 1 else several
        ends_at = f"is expected to end at {in_utc(last.at)} {IN_WORDS[last.known_from]}"
        leaves = "leaves to make room" if len(start.freed) == 1 else "is to leave to make room"
        parts.append(f"it gets {held} from {whom} {leaves if start.at + _ABOUT < last.at else ends_at}")
    if start.freed_by_queue:
        are = "is" if start.freed_by_queue == 1 else "are"
        parts.append(f"{_count(start.freed_by_queue, 'task')} of the queue {are} expected to run there before")
    if not known and not start.freed_by_queue:
        parts.append("there is room for it" if start.at <= now else "there is room for it then")
    return "; ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def in_utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def shortened(snapshot: PoolSnapshot, most: int) -> PoolSnapshot:
    """``snapshot`` with the first ``most`` of its queue; where shares decide, the first of each share. Those that may
    not start in it yet come last."""
    if len(snapshot.pending) <= most:
        return snapshot
    rank = ranking(snapshot.policy)
    in_order = sorted(snapshot.pending, key=rank)
    in_order.sort(key=lambda one: _waits_elsewhere(one, snapshot.now))
    if snapshot.policy.queue in ("fair_share", "round_robin"):
        places: dict[str, int] = {}
        place_of: dict[str, int] = {}
        for one in in_order:
            share = one.share or one.job
            place_of[one.allocation] = places[share] = places.get(share, -1) + 1
        in_order.sort(key=lambda one: (_waits_elsewhere(one, snapshot.now), place_of[one.allocation]))
    return msgspec.structs.replace(snapshot, pending=tuple(in_order[:most]))


def _waits_elsewhere(request: PendingAllocation, now: datetime) -> bool:
    """Whether it is not in the queue yet."""
    return request.not_before is not None and request.not_before > now
