"""What services say can be found by the allocation that it is about."""

from __future__ import annotations

from datetime import UTC, datetime

from libs.loglines.service_lines import service_batch, service_line


def test_lines_of_services_name_their_allocation() -> None:
    lines = [service_line("hello", seq=seq, at=datetime(2030, 1, 1, tzinfo=UTC)) for seq in (3, 5)]
    batch = service_batch(lines, task="t", allocation="t.2")
    assert [(line.seq, line.log, line.allocation_id) for line in batch.lines] == [
        (3, b"hello\n", "t.2"),
        (5, b"hello\n", "t.2"),
    ]
    assert batch.allocation == "t.2"
