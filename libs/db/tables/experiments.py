"""Experiments, what their searches know, and what their searches have yet to hear.

The api writes an experiment, what its search begins with and the state that its owner asks for; the scheduler's engine
writes everything that follows.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Numeric,
    Table,
    Text,
    func,
    literal_column,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from libs.db.tables.metadata import document, metadata, moment, serial_id
from libs.natural_order.sql import natural

experiments = Table(
    "experiments",
    metadata,
    serial_id(),
    Column("state", Text, nullable=False),
    document("config", nullable=False),
    # What users wrote of its pods (libs.events.orders.UsersPod); NULL of experiments from before it was kept.
    document("users_pod"),
    Column("original_config", Text, nullable=False),
    Column("owner_id", BigInteger, ForeignKey("users.id"), nullable=False),
    Column("project_id", BigInteger, ForeignKey("projects.id"), nullable=False),
    Column("parent_id", BigInteger),
    Column("job_id", Text, nullable=False, unique=True),
    Column("progress", Float),
    Column("archived", Boolean, nullable=False, server_default=text("false")),
    Column("notes", Text, nullable=False, server_default=""),
    Column("unmanaged", Boolean, nullable=False, server_default=text("false")),
    Column("external_id", Text, unique=True),
    Column("best_trial_id", BigInteger),
    moment("start_time", nullable=False),
    moment("end_time"),
    Column("checkpoint_size", BigInteger, nullable=False, server_default="0"),
    Column("checkpoint_count", Integer, nullable=False, server_default="0"),
    # Why it failed, for its owner to read.
    Column("error", Text),
    # Ids of the GC tasks that a deletion waits for; NULL until it has made them.
    document("deletion_tasks"),
    Column("ssh_private_key", Text, nullable=False, server_default=""),
    Column("ssh_public_key", Text, nullable=False, server_default=""),
)
Index("ix_experiments_unfinished", experiments.c.id, postgresql_where=text("end_time IS NULL"))
Index("ix_experiments_hidden", experiments.c.id, postgresql_where=text("archived OR state = 'DELETING'"))
Index("ix_experiments_deleting", experiments.c.id, postgresql_where=text("state = 'DELETING'"))
# Not parameters: a statement that is planned once for all its values would not find the index.
_name = experiments.c.config.op("->>")(literal_column("'name'", Text))
natural_experiment_name = natural(func.coalesce(_name, literal_column("''", Text), type_=Text))
Index("ix_experiments_natural_order", natural_experiment_name, experiments.c.id)
# All three letters in a row of the name: what has a text in it has those of the text (migration 0032).
trigrams_of_experiment_name = func.name_trigrams(_name, type_=ARRAY(Text))
Index("ix_experiments_name_trigrams", trigrams_of_experiment_name, postgresql_using="gin")
# Lists have the ids of equal rows in the direction of the order, searches have them ascending.
Index("ix_experiments_started", experiments.c.start_time, experiments.c.id)
Index("ix_experiments_started_last", experiments.c.start_time.desc(), experiments.c.id)
Index("ix_experiments_of_owner", experiments.c.owner_id, experiments.c.id)
Index("ix_experiments_of_project", experiments.c.project_id, experiments.c.id)
Index("ix_experiments_in_state", experiments.c.state, experiments.c.id)
Index("ix_experiments_last_of_project", experiments.c.project_id, experiments.c.start_time)
experiment_labels = experiments.c.config.op("->", return_type=JSONB())(literal_column("'labels'", Text))
Index(
    "ix_experiments_labels",
    experiment_labels.label("labels"),
    postgresql_using="gin",
    postgresql_ops={"labels": "jsonb_path_ops"},
)

# How many there are, by what most lists are filtered by. The numbers of a group add up to its rows in every snapshot:
# triggers (migrations 0014 and 0015) add one for each change, in its transaction, and the scheduler puts those of a
# group together.
experiment_counts = Table(
    "experiment_counts",
    metadata,
    Column("project_id", BigInteger, nullable=False),
    Column("owner_id", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("archived", Boolean, nullable=False),
    Column("number", BigInteger, nullable=False),
)

# The same for each label, of the experiments that have it. The scheduler puts the changes of a group together with what
# is a sum already.
label_counts = Table(
    "label_counts",
    metadata,
    Column("label", Text, nullable=False),
    Column("project_id", BigInteger, nullable=False),
    Column("owner_id", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("archived", Boolean, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("is_sum", Boolean, nullable=False, server_default=text("false")),
)
Index("ix_label_counts_label", label_counts.c.label, postgresql_using="hash")
Index("ix_label_counts_changes", label_counts.c.project_id, postgresql_where=text("NOT is_sum"))

# Which experiments have a label, in the order of ids: triggers (migration 0022) keep it true.
labelled_experiments = Table(
    "labelled_experiments",
    metadata,
    # metric_name_key(label): the label itself, unless it is too long for an index.
    Column("label_key", Text, primary_key=True),
    Column("experiment_id", BigInteger, primary_key=True),
)

# What experiments are filtered by, in the order of indexes: triggers (migration 0028) keep it true.
experiment_numbers = Table(
    "experiment_numbers",
    metadata,
    Column("project_id", BigInteger, primary_key=True, autoincrement=False),
    # metric_name_key of hp.<name>
    Column("column_key", Text(collation="C"), primary_key=True),
    # The ends of a range; of a constant both are its value.
    Column("lowest", Numeric, primary_key=True),
    Column("highest", Numeric, nullable=False),
    Column("experiment_id", BigInteger, primary_key=True, autoincrement=False),
)
Index(
    "ix_experiment_numbers_highest",
    experiment_numbers.c.project_id,
    experiment_numbers.c.column_key,
    experiment_numbers.c.highest,
    experiment_numbers.c.experiment_id,
    postgresql_include=["lowest"],
)
# The trials that are best_trial_id of an experiment, by their ids; kept by triggers too.
best_runs = Table(
    "best_runs",
    metadata,
    Column("trial_id", BigInteger, primary_key=True, autoincrement=False),
    Column("experiment_id", BigInteger, primary_key=True, autoincrement=False),
)

PART_BITS: Final = 9
"""Experiments whose ids are the same but for so many of the last bits are a part of their project."""

# How often a part of a project has changed in what all experiments of the project are asked for: configurations, best
# trials, of trials summaries, hyperparameters and metadata, and who is archived or being deleted. The numbers of a part
# add up to more in a snapshot than in another if and only if it has changed in between: triggers (migrations 0024 and
# 0025, 0045 and 0046) add one for each change, in its transaction, and the scheduler puts those of a part together.
project_changes = Table(
    "project_changes",
    metadata,
    Column("project_id", BigInteger, nullable=False, index=True),
    Column("part", BigInteger, nullable=False),
    Column("number", BigInteger, nullable=False),
)

model_definitions = Table(
    "model_definitions",
    metadata,
    Column("experiment_id", BigInteger, ForeignKey("experiments.id", ondelete="CASCADE"), primary_key=True),
    Column("tgz", LargeBinary, nullable=False),
    Column("size_bytes", Integer, nullable=False),
)

searcher_snapshots = Table(
    "searcher_snapshots",
    metadata,
    Column("experiment_id", BigInteger, ForeignKey("experiments.id", ondelete="CASCADE"), primary_key=True),
    document("snapshot", nullable=False),
)

# What the search of an experiment has yet to hear, in the order of ids. Written with the fact itself in one
# transaction, deleted with the snapshot that has heard it in one transaction: each is heard exactly once.
searcher_events = Table(
    "searcher_events",
    metadata,
    serial_id(),
    Column("experiment_id", BigInteger, ForeignKey("experiments.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("trial_id", BigInteger, nullable=False),
    # validation {metrics}, progress {progress}, early_exit {reason}, exited {state}
    Column("kind", Text, nullable=False),
    document("payload", default="{}"),
    moment("created_at", default_now=True),
)
