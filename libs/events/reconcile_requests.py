"""What is asked of the scheduler: to look at experiments now, and to say when it has.

It looks anyway, because of the events of whoever changed something; the answer only tells the api when clients may
look. Request and reply on ``subjects.RECONCILE``; the reply is empty.
"""

from __future__ import annotations

from msgspec import Struct


class ReconcileRequest(Struct, frozen=True, kw_only=True, tag="reconcile.requested"):
    experiments: tuple[int, ...]
