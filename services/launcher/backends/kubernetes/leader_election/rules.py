"""Rules of the lease of a pool (pure): when it may be taken, and what is written into it.

The rules of client-go's leader election. Times in the record are for people to read: clocks of two machines differ, so
a lease has run out when its record has not changed for as long as it says, by the clock of whoever looks at it.
Source: https://pkg.go.dev/k8s.io/client-go/tools/leaderelection; https://kubernetes.io/docs/concepts/architecture/leases/.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from services.launcher.backends.kubernetes.client.objects import Lease, LeaseSpec


class Sight(Struct, frozen=True):
    """A lease as last read, and since when it has said the same."""

    lease: Lease | None
    """None: there is none."""
    since: float
    """Seconds, by a clock of the observer's own that never steps back."""


def look(before: Sight | None, lease: Lease | None, *, now: float) -> Sight:
    """What is known after reading ``lease``. Labels and the like may change without giving its holder more time."""
    same = before is not None and before.lease is not None and lease is not None and before.lease.spec == lease.spec
    return Sight(lease, before.since if same and before is not None else now)


def may_take(sight: Sight, *, identity: str, lease_s: float, now: float) -> bool:
    """Whether ``identity`` may write itself into the lease: nobody holds it, or no longer, or it does so itself.

    lease_s  how long a lease lasts that does not say so
    """
    if sight.lease is None or not sight.lease.spec.holder_identity:
        return True
    spec = sight.lease.spec
    return spec.holder_identity == identity or now - sight.since >= (spec.lease_duration_seconds or lease_s)


def taken(spec: LeaseSpec | None, *, identity: str, lease_s: int, now: datetime) -> dict[str, Any]:
    """The ``spec`` of a lease that ``identity`` takes, or keeps.

    spec  what it said before; None when there was none
    """
    before = spec or LeaseSpec()
    keeps = before.holder_identity == identity
    return {
        "holderIdentity": identity,
        "leaseDurationSeconds": lease_s,
        "acquireTime": before.acquire_time if keeps and before.acquire_time else micro_time(now),
        "renewTime": micro_time(now),
        "leaseTransitions": (before.lease_transitions or 0) + (not keeps and spec is not None),
    }


def given_up() -> dict[str, Any]:
    """What is changed in the ``spec`` of a lease by whoever needs it no longer."""
    return {"holderIdentity": None, "leaseDurationSeconds": 1}


def micro_time(moment: datetime) -> str:
    """``MicroTime`` of the Kubernetes API."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
