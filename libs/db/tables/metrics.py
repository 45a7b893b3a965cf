"""Metric reports, one row per trial, group and step; partitioned by trial, so that no index outgrows memory.

Rows that a restarted trial has rolled back stay, archived, and are invisible to every read.

Where ``trials.summary_in_rows`` is set, its summary is here: one row for each group and name. Reports of such a trial
are appended to ``metrics``; what lies behind ``folded_step`` of its group is the tail, which is not in the summary rows
yet. Readers add it, from the same snapshot. All of it is written by the api alone. Locks are taken in the order
experiments, trials, the advisory lock of a trial, groups, levels. Whoever appends shares the advisory lock; whoever
holds it alone knows that no report is being appended.

Levels are what charts of long series read instead of reports: the numbers of a metric packed, made by the api when a
series is asked for, and no truth of their own. Whatever writes or takes back a report at or before ``sealed_step``
forgets them in its transaction (migration 0026): the locked path, and for services of the release before a trigger.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    Sequence,
    Table,
    Text,
    text,
)

from libs.db.tables.metadata import document, metadata, moment

METRIC_PARTITIONS: Final = 8

NOTHING_FOLDED: Final = -(2**31)
"""In place of a step, before the first report of a group is in its summary."""

SUMMARY_LOCKS: Final = 0x5E50_1078
"""First key of the advisory locks of trials; the second is the id of the trial modulo 2147483647."""

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

summary_ids = Sequence("metric_summary_ids", metadata=metadata)

metric_groups = Table(
    "metric_groups",
    metadata,
    Column("trial_id", BigInteger, ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True),
    Column("metric_group", Text, primary_key=True),
    # A summary that is made anew gets a new number; a trigger leaves the rows of the old one to ``metric_garbage``.
    Column("summary_id", BigInteger, nullable=False, server_default=text("nextval('metric_summary_ids')")),
    # Reports of this run may be appended: it has a report of the group, so those of earlier runs lie before that.
    Column("run_id", Integer, nullable=False),
    # Step of the newest report of the group that is in its summary rows, and so are all before it.
    Column("folded_step", Integer, nullable=False, server_default=text(f"'{NOTHING_FOLDED}'::integer")),
    # Goes up with whatever changes the summary rows.
    Column("change_no", BigInteger, nullable=False, server_default="0"),
    postgresql_with={"fillfactor": 50},
)

# No index on what folding changes, and room in each page, so that a new version of a row stays in the page of the old.
metric_summaries = Table(
    "metric_summaries",
    metadata,
    Column("summary_id", BigInteger, primary_key=True, autoincrement=False),
    # metric_name_key(name): the name itself, unless it is too long for an index.
    Column("name_key", Text(collation="C"), primary_key=True),
    Column("name", Text, nullable=False),
    # As in trials.summary_metrics, but without "last".
    document("summary", nullable=False),
    # Value in the last report that had it, NULL when that said null; it counts while last_step is folded_step.
    document("last"),
    Column("last_step", Integer, nullable=False, server_default=text(f"'{NOTHING_FOLDED}'::integer")),
    postgresql_with={"fillfactor": 45},
)

# Trials with reports that may be in none of trials.summary_metrics, total_batches and the summary rows.
metric_marks = Table(
    "metric_marks",
    metadata,
    Column("trial_id", BigInteger, primary_key=True, autoincrement=False),
    moment("marked_at", default_now=True),
)

# Summaries that nothing refers to any more; their rows are deleted piece by piece, and then the row here.
metric_garbage = Table(
    "metric_garbage", metadata, Column("summary_id", BigInteger, primary_key=True, autoincrement=False)
)

generations = Sequence("metric_generations", metadata=metadata)

metric_levels = Table(
    "metric_levels",
    metadata,
    Column("trial_id", BigInteger, ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True),
    Column("metric_group", Text, primary_key=True),
    # Another whenever something is forgotten: chunks are stored if it is what it was before their reports were read.
    Column("generation", BigInteger, nullable=False, server_default=text("nextval('metric_generations')")),
    # No report up to this step is written or taken back without forgetting; a report that stays has it, or a later one.
    Column("sealed_step", Integer, nullable=False),
)

# Equally many points each, numbered from 0 without a gap, from the first report that has the metric
# (services/api/queries/charts/levels/packing.py). Neither column is compressed.
metric_chunks = Table(
    "metric_chunks",
    metadata,
    Column("trial_id", BigInteger, primary_key=True, autoincrement=False),
    Column("metric_group", Text, primary_key=True),
    # metric_name_key(name)
    Column("name_key", Text(collation="C"), primary_key=True),
    Column("chunk_no", Integer, primary_key=True, autoincrement=False),
    Column("first_step", Integer, nullable=False),
    Column("last_step", Integer, nullable=False),
    # Of each block of points its first step, and its lowest and highest number with their steps.
    Column("extremes", LargeBinary, nullable=False),
    # The blocks: steps and numbers of their points.
    Column("points", LargeBinary, nullable=False),
    # NULL where the release before 0043 has made the chunk. Steps of the first and the last point, and the extremes of
    # all; where in each block its extremes are; a hash of the steps, equal where two metrics were reported together.
    Column("outline", LargeBinary),
    Column("positions", LargeBinary),
    Column("steps_hash", LargeBinary),
    ForeignKeyConstraint(
        ["trial_id", "metric_group"], ["metric_levels.trial_id", "metric_levels.metric_group"], ondelete="CASCADE"
    ),
)


def partition_ddl() -> list[str]:
    """Statements that create the partitions of ``metrics``; run once, after the table."""
    return [
        f"CREATE TABLE metrics_p{part} PARTITION OF metrics"
        f" FOR VALUES WITH (MODULUS {METRIC_PARTITIONS}, REMAINDER {part})"
        for part in range(METRIC_PARTITIONS)
    ]
