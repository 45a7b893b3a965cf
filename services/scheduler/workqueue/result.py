"""The result of reconciling an object: what has to be looked at next."""

from __future__ import annotations

from msgspec import Struct


class ReconcileResult(Struct, frozen=True, kw_only=True):
    pools: frozenset[str] = frozenset()
    """Pools whose queues have changed."""
    requested: tuple[str, ...] = ()
    """Allocations that wait in them since then."""
    requeue_after_s: float | None = None
    """When to reconcile the object again even if nothing is heard of it; None is never."""
