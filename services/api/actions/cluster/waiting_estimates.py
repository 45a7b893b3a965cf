"""Asks the scheduler when allocations start of which it has made no estimate yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import structlog

from libs.bus import Bus
from libs.errors import NotFound, Unavailable
from libs.events import subjects
from libs.events.requests.queue_checks import QueueAnswer, QueueAnswers, QueueCheck, WaitingRequest

ANSWERS_WITHIN_S: Final = 10.0
_MOST: Final = 16

log = structlog.get_logger()


async def estimates_now(bus: Bus, rows: Sequence[Mapping[Any, Any]]) -> dict[str, QueueAnswer]:
    """Of those of ``rows``, which wait, that have no estimate, by allocation; empty when no scheduler answers."""
    unknown = [row for row in rows if row["made_at"] is None][:_MOST]
    if not unknown:
        return {}
    waiting = tuple(WaitingRequest(pool=row["pool"], allocation=row["allocation_id"]) for row in unknown)
    try:
        reply = await bus.request(
            subjects.CHECK_QUEUE, msgspec.json.encode(QueueCheck(waiting=waiting)), timeout_s=ANSWERS_WITHIN_S
        )
    except (Unavailable, NotFound) as error:  # what is known is answered all the same
        log.info("waiting.not_estimated", error=str(error))
        return {}
    answers = msgspec.json.decode(reply, type=QueueAnswers).waiting
    # A scheduler of the release before knows no such question, and answers none.
    found = zip(waiting, answers, strict=False)
    return {one.allocation: answer for one, answer in found if answer is not None}
