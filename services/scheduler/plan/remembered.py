"""What requests take with them from a plan to the next one: since when they are blocked, who has passed them meanwhile,
and the places that others were asked to leave for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from services.scheduler.plan.decisions import Plan
from services.scheduler.plan.snapshot import PendingAllocation


def remembered(made: Plan, pending: Iterable[PendingAllocation]) -> Iterator[PendingAllocation]:
    """Those of ``pending`` that ``made`` may change, as the next plan gets them.

    Who is not the first without room any more, and has no place either, is blocked anew if that happens again: where
    shares decide, former heads would otherwise be looked at before the present one, one after the other.
    """
    heads = {head.allocation: head for head in made.blocked}
    nominated = {one.allocation: one.placements for one in made.nominated}
    for request in pending:
        name = request.allocation
        if name not in heads and name not in nominated and request.blocked_at is None:
            continue
        head, places = heads.get(name), nominated.get(name, request.nominated)
        since, overtaken = (request.blocked_at, request.overtaken) if places else (None, 0)
        if head is not None:
            since, overtaken = head.since, head.overtaken
        yield msgspec.structs.replace(request, blocked_at=since, overtaken=overtaken, nominated=places)
