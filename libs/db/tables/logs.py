"""Task logs: the lines, how far each stream of them has come, and who writes.

All of it is written by the logs service; the api and the scheduler read.
"""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import TIMESTAMP

from libs.db.tables.metadata import metadata, moment

task_logs = Table(
    "task_logs",
    metadata,
    # A page of a task is one index range: its lines by id. Ids of one task grow in the order of commits, because a
    # writer takes them under the lock of the task's shard; so no line ever appears behind a reader's cursor.
    Column("task_id", Text, primary_key=True),
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("ingested_at", TIMESTAMP(timezone=True), primary_key=True),
    Column("timestamp", TIMESTAMP(timezone=True)),
    # Bytes: a line may hold NUL, and need not be UTF-8.
    Column("log", LargeBinary, nullable=False),
    # What a search looks at, when log is not text that PostgreSQL can hold; NULL when it is.
    Column("searchable", Text),
    # TRACE, DEBUG, INFO, WARNING, ERROR, CRITICAL, or NULL for a line without a level
    Column("level", Text),
    Column("rank_id", Integer),
    Column("stdtype", Text),
    Column("source", Text),
    Column("agent_id", Text),
    Column("container_id", Text),
    Column("allocation_id", Text),
    postgresql_partition_by="RANGE (ingested_at)",
)

log_streams = Table(
    "log_streams",
    metadata,
    Column("stream_key", Text, primary_key=True),
    Column("task_id", Text, nullable=False, index=True),
    Column("allocation_id", Text),
    # False for streams that services write: gaps mean nothing there, and they need not end.
    Column("contiguous", Boolean, nullable=False),
    # Everything below is stored, except what missing lists: first and end of each gap, flat and ascending.
    Column("next_seq", BigInteger, nullable=False),
    Column("missing", ARRAY(BigInteger), nullable=False),
    # Number of its lines, once that is known.
    Column("end_seq", BigInteger),
    # Everything that is known to exist is below; more than next_seq when something before that has not come.
    Column("seen_seq", BigInteger, nullable=False, server_default="0"),
    # Its shard while it waits for what has not come, and since when without any of that coming.
    Column("waits_in", SmallInteger),
    moment("waits_since"),
    # Size of its batches in log_parked.
    Column("parked_bytes", BigInteger, nullable=False, server_default="0"),
    # When the last of its lines was stored; nothing follows.
    moment("sealed_at"),
    # ingested_at of all its lines lies between these two.
    moment("opened_at", nullable=False),
    moment("written_at", nullable=False),
)
Index("ix_log_streams_written_at", log_streams.c.written_at)
Index("ix_log_streams_waiting", log_streams.c.waits_in, postgresql_where=log_streams.c.waits_in.is_not(None))

# Batches that came before their predecessors. They wait here, not in memory: nothing is lost with a writer.
log_parked = Table(
    "log_parked",
    metadata,
    Column(
        "stream_key",
        # Deferred: a batch is parked before the row of its stream says how much is.
        ForeignKey("log_streams.stream_key", ondelete="CASCADE", deferrable=True, initially="DEFERRED"),
        primary_key=True,
    ),
    Column("first_seq", BigInteger, primary_key=True),
    # End of the batch: the seq after its last line.
    Column("end_seq", BigInteger, primary_key=True),
    Column("size_bytes", Integer, nullable=False),
    # A LogBatch in msgpack.
    Column("batch", LargeBinary, nullable=False),
    moment("parked_at", nullable=False),
)

# Who shares the shards now: a writer keeps its row fresh, the others count on it until it expires.
log_writers = Table(
    "log_writers",
    metadata,
    Column("writer", Text, primary_key=True),
    moment("expires_at", nullable=False),
)
