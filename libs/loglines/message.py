"""The one text of a line that the command line and the SDK print (docs/reference/logs.md 1.4), and its timestamp."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

CONTAINER_WIDTH: Final = 8
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def flat_message(
    *, timestamp: datetime | None, container_id: str | None, rank_id: int | None, level: str | None, log: str
) -> str:
    """``[<time>] <container> [rank=<n>] || <LEVEL>: <log>``, without the parts that are None.

    The log is appended untouched, with the newline it ends in; clients add none.
    """
    time = "UNKNOWN TIME" if timestamp is None else f"{timestamp.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
    parts = [f"[{time}]", container_id[:CONTAINER_WIDTH] if container_id else " " * CONTAINER_WIDTH]
    if rank_id is not None:
        parts.append(f"[rank={rank_id}]")
    parts.append("||")
    if level is not None:
        parts.append(f"{level}:")
    return " ".join((*parts, log))


def readable(log: bytes) -> str:
    """The line as JSON can carry it: NUL stays, what is not UTF-8 is replaced."""
    return log.decode("utf-8", "replace")


def wire_time(timestamp: datetime) -> str:
    """RFC 3339 with ``Z`` and 0, 3 or 6 fraction digits, as protobuf writes it (docs/reference/logs.md 1.3)."""
    moment = timestamp.astimezone(UTC)
    text = f"{moment:%Y-%m-%dT%H:%M:%S}"
    if moment.microsecond:
        digits = 3 if moment.microsecond % 1000 == 0 else 6
        text += f".{moment.microsecond:06d}"[: digits + 1]
    return f"{text}Z"


def moment_of(timestamp_ns: int) -> datetime:
    """The moment of a Unix time in nanoseconds, cut to microseconds; exact where floats are not."""
    return _EPOCH + timedelta(microseconds=timestamp_ns // 1000)


def nanoseconds_of(moment: datetime) -> int:
    """Unix time in nanoseconds; a moment without a time zone is taken to be UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1) * 1000
