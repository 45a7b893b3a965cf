"""What has a queue in several pools has an estimate in each, and starts in the first that can run it. Pure.

People are told the first of these instants, and which pool that is; who is before it is said of its own pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct

from services.scheduler.plan.forecast.estimates import StartEstimate
from services.scheduler.plan.snapshot import PoolSnapshot

NOTHING_EXPECTED: Final[Mapping[str, datetime]] = {}


class PoolEstimates(Struct, frozen=True):
    """Of one pool, as it was at one moment."""

    pool: str
    made_at: datetime
    own: tuple[StartEstimate, ...] = ()
    """Of what was queued there."""
    guests: tuple[StartEstimate, ...] = ()
    """Of what was queued in other pools, and may start there, too."""
    has_shared: bool = False
    """Whether something has several queues, of which this is one."""


def without_early(snapshot: PoolSnapshot, expected: Mapping[str, datetime]) -> PoolSnapshot:
    """``snapshot`` without those that will hardly come into its queue, as they are expected to start before.

    expected  starts of allocations, by the last estimates
    """
    stay = tuple(
        one
        for one in snapshot.pending
        if one.not_before is None or one.allocation not in expected or expected[one.allocation] >= one.not_before
    )
    return snapshot if len(stay) == len(snapshot.pending) else msgspec.structs.replace(snapshot, pending=stay)


def with_other_pools(found: PoolEstimates, others: Iterable[PoolEstimates]) -> tuple[StartEstimate, ...]:
    """Those of what was queued in ``found``, each of the pool in which it is expected to start first."""
    best: dict[str, tuple[datetime, str, StartEstimate]] = {}
    for other in others:
        for one in other.guests if other.pool != found.pool else ():
            if one.at is None:
                continue
            at = max(one.at, found.made_at)  # the other pool was looked at a moment before, perhaps
            if one.allocation not in best or (at, other.pool) < best[one.allocation][:2]:
                best[one.allocation] = at, other.pool, one
    return tuple(_first(one, best.get(one.allocation)) for one in found.own)


def _first(own: StartEstimate, elsewhere: tuple[datetime, str, StartEstimate] | None) -> StartEstimate:
    if elsewhere is None or (own.at is not None and own.at <= elsewhere[0]):
        return own
    at, pool, there = elsewhere
    return msgspec.structs.replace(own, at=at, basis=f"in resource pool {pool}: {there.basis}")
