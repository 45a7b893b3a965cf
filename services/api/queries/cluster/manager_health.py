"""The health of the resource manager: it is there while some launcher has reported its pool lately. Pure.

A launcher reports at least every 30 s, and one that loses its API server ends within seconds rather than report what
it remembers, so reports that stay away stand for both. Source: docs/reference/kubernetes.md 13.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from libs.events.capacity import PoolCapacity

SILENCE: Final = timedelta(seconds=100)
"""Of all pools, after which the manager counts as down: three reports are missing."""


def is_reporting(capacities: Iterable[PoolCapacity], now: datetime) -> bool:
    """``capacities`` are the last reports of the configured pools, of those that have any."""
    seen = [moment for capacity in capacities if (moment := _moment(capacity.seen_at)) is not None]
    return bool(seen) and now - max(seen) <= SILENCE


def _moment(text: str) -> datetime | None:
    """None for what is no moment with an offset."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
