"""Requests to the scheduler to reconcile experiments, allocations or generic tasks now, and to answer when it has.

It does so anyway, because of the events of whoever changed something; the answer only tells the api when clients may
look for the effect. Request and reply on ``subjects.RECONCILE``; the reply is empty.
"""

from __future__ import annotations

from msgspec import Struct


class ReconcileRequest(Struct, frozen=True, kw_only=True, tag="reconcile.requested"):
    experiments: tuple[int, ...] = ()
    allocations: tuple[str, ...] = ()
    """Those about which the api has noted a request, as to kill them."""
    generic_tasks: tuple[str, ...] = ()
