"""What is copied into the table: decoded again as PostgreSQL would."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from typing import Any

from libs.events.logs import LogLine
from libs.loglines.message import moment_of
from services.logs.lines.copy_format import COLUMNS, PIECE_BYTES, rows_of

NOW = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
MOMENTS = ("ingested_at", "timestamp")


def decoded(data: bytes) -> list[dict[str, Any]]:
    """Rows in the binary form of COPY, without its signature and trailer."""
    rows = []
    at = 0
    while at < len(data):
        (fields,) = struct.unpack_from(">h", data, at)
        assert fields == len(COLUMNS)
        at += 2
        row: dict[str, Any] = {}
        for name in COLUMNS:
            (length,) = struct.unpack_from(">i", data, at)
            at += 4
            value = None if length < 0 else data[at : at + length]
            assert value is None or len(value) == length
            at += max(length, 0)
            row[name] = value if value is None or name == "log" else _value(name, value)
        rows.append(row)
    return rows


def _value(name: str, value: bytes) -> Any:
    if name in MOMENTS:
        return datetime(2000, 1, 1, tzinfo=UTC) + timedelta(microseconds=struct.unpack(">q", value)[0])
    return struct.unpack(">i", value)[0] if name == "rank_id" else value.decode()


def test_a_row_says_what_its_line_says() -> None:
    line = LogLine(7, 1_700_000_000_123_456_789, "grüße\n".encode(), "INFO", 3, "stdout", "node", "pod", "1.a.1")
    (row,) = decoded(b"".join(rows_of("1.a", [line], NOW)))
    assert row == {
        "task_id": "1.a",
        "ingested_at": NOW,
        "level": "INFO",
        "rank_id": 3,
        "stdtype": "stdout",
        "source": "task",
        "agent_id": "node",
        "container_id": "pod",
        "allocation_id": "1.a.1",
        "timestamp": moment_of(line.timestamp_ns),
        "log": "grüße\n".encode(),
        "searchable": None,
    }


def test_lines_that_say_different_things_share_nothing() -> None:
    lines = [LogLine(0, 0, b"a", "INFO"), LogLine(1, -1, b"b\xff", None, 0), LogLine(2, 2**63, b"", "INFO", None, "")]
    rows = decoded(b"".join(rows_of("t", lines, NOW)))
    assert [(row["level"], row["rank_id"], row["stdtype"]) for row in rows] == [
        ("INFO", None, None),
        (None, 0, None),
        ("INFO", None, ""),
    ]
    assert [row["timestamp"] for row in rows] == [moment_of(line.timestamp_ns) for line in lines]
    assert [row["searchable"] for row in rows] == [None, "b\N{REPLACEMENT CHARACTER}", None]


def test_a_row_holds_nothing_that_postgres_cannot() -> None:
    line = LogLine(0, 2**64 - 1, b"\x00", "\0", 2**40, "\0", "a\0", "b\0", None, "\0")
    (row,) = decoded(b"".join(rows_of("t", [line], NOW)))
    assert "\0" not in "".join(value for value in row.values() if isinstance(value, str))
    assert row["rank_id"] is None


def test_many_lines_come_in_pieces_of_whole_rows() -> None:
    lines = [LogLine(seq, seq, b"x" * 1000) for seq in range(1000)]
    pieces = list(rows_of("t", lines, NOW))
    assert len(pieces) > 3
    assert all(len(piece) < 2 * PIECE_BYTES for piece in pieces)
    assert sum(len(decoded(piece)) for piece in pieces) == len(lines)
