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
    created_until: int = 0
    """Of an experiment that is new: the last number in the outbox that its transaction took. Events about it up to that
    one say nothing new to whoever reconciles it because of this request; 0 says nothing of the kind."""
