"""When the polls by which training code asks whether to leave count as absent, and what its owner is told. Pure.

The harness keeps one open nearly all of the time (docs/reference/harness-protocol.md 12.2), and says nothing to anybody
when its connections fail. Code that never asked is not missed.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

ABSENCE: Final = timedelta(minutes=3)
"""After so long without a poll the owner of the task is told."""
NOTED_EVERY: Final = timedelta(minutes=1)
"""A poll that is open, or that follows another at once, is noted again after this time."""


def is_due(polled_at: datetime | None, *, absence_noted: bool, now: datetime) -> bool:
    """Whether a poll has to be noted: the first one, one after an absence, and then one a minute.

    polled_at  of the one that was noted last
    """
    return polled_at is None or absence_noted or now - polled_at >= NOTED_EVERY


def absent_since_before(now: datetime) -> datetime:
    """Polls whose last note is older have been absent for ``ABSENCE`` at least: they may have gone on for a while."""
    return now - ABSENCE - NOTED_EVERY


def absence_line(polled_at: datetime) -> str:
    """What the log of the task says."""
    since = polled_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    minutes = int(ABSENCE.total_seconds() / 60)
    return (
        f"The training code has stopped asking the master whether to pause: it was last heard soon after {since}, more "
        f"than {minutes} minutes ago. If it still trains, its connections to the master fail, and pauses do not reach "
        "it. Look for errors of connections or certificates in this log, at the certificate that the task trusts, and "
        "at the network policies between its pod and the api."
    )
