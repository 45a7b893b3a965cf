"""Metric reports, one row per trial, group and step; partitioned by trial, so that no index outgrows memory.

Rows that a restarted trial has rolled back stay, archived, and are invisible to every read.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Boolean, Column, Identity, Index, Integer, Table, Text, text

from libs.db.tables.metadata import document, metadata, moment

METRIC_PARTITIONS: Final = 8

metrics = Table(
    "metrics",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("trial_id", BigInteger, primary_key=True),
    Column("trial_run_id", Integer, nullable=False),
    Column("metric_group", Text, nullable=False),
    # TRAINING, VALIDATION, GENERIC, PROFILING
    Column("kind", Text, nullable=False),
    Column("total_batches", Integer),
    moment("end_time", nullable=False),
    # {"avg_metrics", "batch_metrics"} or {"validation_metrics"}; as it came for PROFILING
    document("metrics", nullable=False),
    Column("archived", Boolean, nullable=False, server_default=text("false")),
    postgresql_partition_by="HASH (trial_id)",
)
Index(
    "uq_metrics_step",
    metrics.c.trial_id,
    metrics.c.metric_group,
    metrics.c.total_batches,
    unique=True,
    postgresql_where=text("NOT archived AND kind <> 'PROFILING'"),
)
# Profiling has no steps; it is read by time, and a repeated report is known by its time.
Index(
    "ix_metrics_profiling",
    metrics.c.trial_id,
    metrics.c.metric_group,
    metrics.c.end_time,
    postgresql_where=text("kind = 'PROFILING'"),
)


def partition_ddl() -> list[str]:
    """Statements that create the partitions of ``metrics``; run once, after the table."""
    return [
        f"CREATE TABLE metrics_p{part} PARTITION OF metrics"
        f" FOR VALUES WITH (MODULUS {METRIC_PARTITIONS}, REMAINDER {part})"
        for part in range(METRIC_PARTITIONS)
    ]
