"""Partitions of ``task_logs``, one for each day, and the locks under which its shards are written."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

DAY_PARTITION: Final = "task_logs_d"
"""Prefix of the partitions; a day follows: ``task_logs_d20260131``."""
SHARD_LOCK: Final = 0x5E501075
"""First key of the advisory locks under which a shard is written; the second is its number."""


def day_partition(day: date) -> str:
    """Name of the partition of one day, UTC."""
    return f"{DAY_PARTITION}{day:%Y%m%d}"


def day_partition_ddl(day: date) -> str:
    """The statement that adds the partition of one day, UTC, unless it is there."""
    return (
        f"CREATE TABLE IF NOT EXISTS {day_partition(day)} PARTITION OF task_logs"
        f" FOR VALUES FROM ('{day} 00:00:00+00') TO ('{day + timedelta(days=1)} 00:00:00+00')"
    )
