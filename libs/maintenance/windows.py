"""What a maintenance window is, and what is said about it. Pure."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from libs.errors import InvalidRequest

LONGEST_MESSAGE: Final = 250
"""Characters: it is in the reason of everything that waits for the end of the window."""
MOST_NODES: Final = 1000
_EARLIEST: Final = timedelta(days=366)
"""Before now: what has begun earlier is a mistake in the year."""
_LATEST: Final = timedelta(days=36600)
"""After now."""
UNDER_MAINTENANCE: Final = "under maintenance from"
"""In every reason that a window gives, and in no other one."""
_NAMED: Final = 3


class MaintenanceWindow(Struct, frozen=True, kw_only=True):
    """Of one pool, or of named nodes of whichever pool."""

    id: int
    pool: str = ""
    """Empty where nodes are named."""
    nodes: tuple[str, ...] = ()
    starts_at: datetime
    ends_at: datetime
    message: str = ""

    @property
    def sentence(self) -> str:
        """Of a window that is kept: ``node a is under maintenance from 2030-01-31 12:00 UTC to ...: new switches``."""
        return self.sentence_of(self.nodes)

    def sentence_of(self, nodes: Collection[str]) -> str:
        """The same of some of its nodes."""
        when = f"{UNDER_MAINTENANCE} {_moment(self.starts_at)} to {_moment(self.ends_at)}"
        said = f"{_named(self.pool, sorted(nodes))} {when}"
        return f"{said}: {self.message}" if self.message else said


def check_window(window: MaintenanceWindow, *, pools: Collection[str] | None, now: datetime) -> None:
    """Raises InvalidRequest with the name of the field.

    pools  those that there are; None where that is not known
    """
    if bool(window.pool) is bool(window.nodes):
        raise InvalidRequest("resourcePool, nodes: name either a resource pool or nodes")
    if window.pool and pools is not None and window.pool not in pools:
        raise InvalidRequest(f"resourcePool: resource pool {window.pool} does not exist")
    if not all(window.nodes) or len(window.nodes) > MOST_NODES:
        raise InvalidRequest(f"nodes: must be names of {MOST_NODES} nodes at most")
    if window.ends_at <= window.starts_at:
        raise InvalidRequest("endTime: must be after startTime")
    if window.ends_at <= now:
        raise InvalidRequest("endTime: must be in the future")
    if window.starts_at < now - _EARLIEST:
        raise InvalidRequest("startTime: must not be more than a year ago")
    if window.ends_at > now + _LATEST:
        raise InvalidRequest("endTime: must not be more than a hundred years ahead")
    if len(window.message) > LONGEST_MESSAGE or not window.message.isprintable():
        raise InvalidRequest(f"message: must be one line of {LONGEST_MESSAGE} characters at most")


def _named(pool: str, nodes: list[str]) -> str:
    if pool:
        return f"resource pool {pool} is"
    if len(nodes) == 1:
        return f"node {nodes[0]} is"
    more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
    return f"nodes {', '.join(nodes[:_NAMED])}{more} are"


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
