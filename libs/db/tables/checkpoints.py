"""Checkpoints as reported, and the storage configurations in force when they were."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text, text

from libs.db.tables.metadata import document, metadata, moment, serial_id

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("uuid", Text, primary_key=True),
    Column("task_id", Text, nullable=False, index=True),
    Column("allocation_id", Text),
    Column("trial_id", BigInteger, index=True),
    Column("experiment_id", BigInteger, index=True),
    moment("report_time", nullable=False),
    # COMPLETED, PARTIALLY_DELETED, DELETED (ACTIVE and ERROR exist on the wire only)
    Column("state", Text, nullable=False),
    document("resources", default="{}"),
    document("metadata", default="{}"),
    Column("steps_completed", BigInteger),
    Column("size_bytes", BigInteger, nullable=False, server_default="0"),
    Column("storage_id", BigInteger),
)

storage_backends = Table(
    "storage_backends",
    metadata,
    serial_id(),
    document("config", nullable=False),
    # SHA-256 of the canonical JSON of config: same configuration, same row.
    Column("config_hash", LargeBinary, nullable=False, unique=True),
)

# Hosts of storage that may be at private addresses though users name it: those that were stored before this was looked
# at, and those that the configuration of the cluster has named since. Written by a migration, by the api at its start
# and by ``resolute import``.
storage_hosts = Table(
    "storage_hosts",
    metadata,
    Column("host", Text, primary_key=True),
    Column("port", Integer, primary_key=True),
)

# The storages that the trials of an experiment have registered. Only in those can its checkpoints be, since whoever
# deletes their files is given the keys of their storage. Written by the api.
experiment_storages = Table(
    "experiment_storages",
    metadata,
    Column("experiment_id", BigInteger, ForeignKey("experiments.id", ondelete="CASCADE"), primary_key=True),
    Column("storage_id", BigInteger, ForeignKey("storage_backends.id"), primary_key=True),
)

# Files that somebody wants gone from checkpoint storage. Written by the api; the scheduler makes a
# CHECKPOINT_GC task of each and deletes the row in the same transaction.
checkpoint_gc_requests = Table(
    "checkpoint_gc_requests",
    metadata,
    serial_id(),
    Column(
        "experiment_id",
        BigInteger,
        ForeignKey("experiments.id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    # Row of storage_backends; NULL is the storage in the configuration of the experiment.
    Column("storage_id", BigInteger),
    # Checkpoints, all of that storage; empty when only TensorBoard files are meant.
    document("uuids", default="[]"),
    # What to delete of each: ["**/*"] is everything, [] nothing (only the list of files is refreshed).
    document("globs", default="[]"),
    Column("delete_tensorboards", Boolean, nullable=False, server_default=text("false")),
    moment("created_at", default_now=True),
)

trial_sources = Table(
    "trial_sources",
    metadata,
    Column("trial_id", BigInteger, primary_key=True),
    Column("checkpoint_uuid", Text, primary_key=True),
    # Which version of a model it is, when the trial said so; both or neither.
    Column("model_id", BigInteger),
    Column("model_version", Integer),
    Column("trial_source_info_type", Text, nullable=False),
    Index("ix_trial_sources_model_id_model_version", "model_id", "model_version"),
)
