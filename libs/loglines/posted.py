"""Lines that clients post to the api, as records: the managed and the legacy form (docs/reference/logs.md 4.2, 4.3,
2.7)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from libs.errors import InvalidRequest
from libs.events.logs import LogLine
from libs.loglines.cutting import pieces
from libs.loglines.levels import level_of
from libs.loglines.message import nanoseconds_of
from libs.loglines.prefixes import MAX_RANK

MAX_IDENT: Final = 256
"""Longest id that is kept of a client's record."""

Record = Mapping[str, Any]


def posted_lines(records: Sequence[Record], *, first_seq: int, now_ns: int) -> tuple[str, tuple[LogLine, ...]]:
    """The task and the lines of ``POST /api/v1/task/logs``; keys may be camelCase or snake_case.

    The lines keep the records' order and take ``seq`` from ``first_seq`` on, without gaps; a record that is too long
    for one line becomes several. A record without a timestamp was written now.
    Raises InvalidRequest with the reference's texts, which its clients' tests know.
    """
    if not records:
        raise InvalidRequest("len logs must be greater than 0")
    task = task_of(records[0])
    lines: list[LogLine] = []
    for record in records:
        if record.get("id") is not None:
            raise InvalidRequest(f"ID must be nil on logs got {record['id']} instead")
        if (other := task_of(record)) != task:
            raise InvalidRequest(
                f"can only post logs of a single taskID per task log request got '{task}' and '{other}'"
            )
        lines.extend(_lines(record, first_seq + len(lines), _time(record, now_ns, strict=True)))
    return task, tuple(lines)


def legacy_records(body: bytes) -> object:
    """What a body of ``POST /task-logs`` says, as well as it can be read; None when it cannot.

    Python encodes text with lone surrogates (file names that are no text) as JSON that strict readers refuse.
    """
    try:
        return json.loads(body.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None


def legacy_lines(records: object, *, first_seq: int, now_ns: int) -> dict[str, tuple[LogLine, ...]]:
    """The lines of ``POST /task-logs`` by task, numbered from ``first_seq`` over all of them.

    Never raises: its client blocks the training process for good when it is refused, so what is odd is read as well
    as possible and what names no task is left out.
    """
    by_task: dict[str, list[LogLine]] = {}
    seq = first_seq
    for record in records if isinstance(records, list) else [records]:
        if isinstance(record, Mapping) and (task := task_of(record)):
            lines = list(_lines(record, seq, _time(record, now_ns, strict=False)))
            by_task.setdefault(task, []).extend(lines)
            seq += len(lines)
    return {task: tuple(lines) for task, lines in by_task.items()}


def _lines(record: Record, seq: int, timestamp_ns: int) -> Iterator[LogLine]:
    log = record.get("log")
    encoded = log.encode("utf-8", "replace") if isinstance(log, str) else b"" if log is None else str(log).encode()
    for offset, piece in enumerate(pieces(encoded)):
        yield LogLine(
            seq=seq + offset,
            timestamp_ns=timestamp_ns,
            log=piece,
            level=level_of(record.get("level")),
            rank_id=_rank(record),
            stdtype=_ident(record, "stdtype"),
            agent_id=_ident(record, "agent_id", "agentId"),
            container_id=_ident(record, "container_id", "containerId"),
            allocation_id=_ident(record, "allocation_id", "allocationId"),
            source=_ident(record, "source") or "task",
        )


def task_of(record: Record) -> str:
    """The task that a record names; '' for none."""
    return _ident(record, "task_id", "taskId") or ""


def _ident(record: Record, *keys: str) -> str | None:
    """The first of ``keys`` that is there, as PostgreSQL can hold it: without NUL, not endless; None when empty."""
    for key in keys:
        value = record.get(key)
        if value is not None:
            text = str(value).replace("\0", "")[:MAX_IDENT].encode("utf-8", "replace").decode()
            return text or None
    return None


def _rank(record: Record) -> int | None:
    # The unmanaged client says ``rank``, and says it as text.
    value = next((record[key] for key in ("rank_id", "rankId", "rank") if record.get(key) is not None), None)
    try:
        rank = int(value) if isinstance(value, (int, str)) else None
    except ValueError:
        return None
    return rank if rank is not None and -MAX_RANK <= rank <= MAX_RANK else None


def _time(record: Record, now_ns: int, *, strict: bool) -> int:
    value = record.get("timestamp")
    if value is None:
        return now_ns
    try:
        written_ns = nanoseconds_of(datetime.fromisoformat(value))
    except (TypeError, ValueError, OverflowError) as error:
        if strict:
            raise InvalidRequest(f"timestamp {value!r} of a log must be RFC 3339") from error
        return now_ns
    if not -(2**63) <= written_ns < 2**63:  # what a line carries to its writer
        if strict:
            raise InvalidRequest(f"timestamp {value!r} of a log must be between the years 1678 and 2261")
        return now_ns
    return written_ns
