"""Trials (runs). State and restarts are the scheduler's; what the training code reports is written by the api.

The api also writes those that an experiment begins with, and the states that the owner of an experiment asks for.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    Numeric,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from libs.db.tables.metadata import document, metadata, moment, serial_id

trials = Table(
    "trials",
    metadata,
    serial_id(),
    Column("experiment_id", BigInteger, ForeignKey("experiments.id", ondelete="CASCADE"), nullable=False),
    Column("project_id", BigInteger, ForeignKey("projects.id"), nullable=False),
    Column("local_id", Integer, nullable=False, server_default="0"),
    # NULL for trials of unmanaged experiments.
    Column("request_id", Text),
    Column("external_id", Text),
    Column("seed", BigInteger, nullable=False, server_default="0"),
    document("hparams", default="{}"),
    Column("state", Text, nullable=False),
    Column("restarts", Integer, nullable=False, server_default="0"),
    # Number of the present allocation, 0 before the first; reports of any other run are refused.
    Column("run_id", Integer, nullable=False, server_default="0"),
    moment("start_time", nullable=False),
    moment("end_time"),
    Column("total_batches", Integer, nullable=False, server_default="0"),
    # With total_batches it lags behind while the trial has a row in metric_marks; see metrics.py.
    document("summary_metrics", default="{}"),
    Column("summary_in_rows", Boolean, nullable=False, server_default=text("false")),
    Column("searcher_metric_value", Float),
    # Smaller is better, whatever the search says.
    Column("searcher_metric_signed", Float),
    # Rows of the table metrics.
    Column("best_validation_id", BigInteger),
    Column("latest_validation_id", BigInteger),
    Column("warm_start_checkpoint_uuid", Text),
    Column("runner_state", Text, nullable=False, server_default=""),
    Column("log_retention_days", Integer),
    Column("log_policy_matched", Text),
    Column("checkpoint_size", BigInteger, nullable=False, server_default="0"),
    Column("checkpoint_count", Integer, nullable=False, server_default="0"),
    Column("archived", Boolean, nullable=False, server_default=text("false")),
    document("metadata"),
    moment("last_activity"),
    # The search decided that it should end; its allocation is asked to leave and it ends COMPLETED.
    Column("stopped_by_searcher", Boolean, nullable=False, server_default=text("false")),
    # Reported by user code (INVALID_HP), with the moment from which it is killed if it still runs.
    Column("early_exit_reason", Text),
    moment("early_exit_deadline"),
    document("blocked_nodes", default="[]"),
    # Attempts in a row that were soon cut off by a fault of the system, and when the next one may begin.
    Column("transient_ends", Integer, nullable=False, server_default="0"),
    moment("not_before"),
    Column("error", Text),
    # How long the attempts of its present task have run that have ended; counted where there is a time limit. Seconds.
    Column("ran_s", Float, nullable=False, server_default="0"),
    UniqueConstraint("experiment_id", "request_id"),
    UniqueConstraint("experiment_id", "external_id"),
)
Index("ix_trials_unfinished", trials.c.experiment_id, postgresql_where=text("end_time IS NULL"))
Index("ix_trials_early_exit", trials.c.early_exit_deadline, postgresql_where=text("early_exit_deadline IS NOT NULL"))
# The runs of a project are counted without a look at their rows, which are long.
Index("ix_trials_of_project", trials.c.project_id, trials.c.experiment_id, postgresql_include=["state", "archived"])
Index("ix_trials_of_project_by_id", trials.c.project_id, trials.c.id)
Index("ix_trials_started", trials.c.project_id, trials.c.start_time, trials.c.id)
# Tables of runs are sorted by it, the best or the worst first; those without a value come last.
Index("ix_trials_searcher_metric", trials.c.project_id, trials.c.searcher_metric_value, trials.c.id)
Index(
    "ix_trials_searcher_metric_desc",
    trials.c.project_id,
    trials.c.searcher_metric_value.desc().nulls_last(),
    trials.c.id,
)

# As experiment_counts, of trials.
trial_counts = Table(
    "trial_counts",
    metadata,
    Column("project_id", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("archived", Boolean, nullable=False),
    Column("number", BigInteger, nullable=False),
)

# The same of the trials of archived experiments, which lists of runs leave out. It is exact but for experiments that
# triggers (migrations 0020 and 0021) have told: the numbers of these are as they were when the scheduler counted last.
archived_trial_counts = Table(
    "archived_trial_counts",
    metadata,
    Column("project_id", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("archived", Boolean, nullable=False),
    Column("number", BigInteger, nullable=False),
)
# What each experiment has in it.
archived_trial_numbers = Table(
    "archived_trial_numbers",
    metadata,
    Column("experiment_id", BigInteger, nullable=False, index=True),
    Column("project_id", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("archived", Boolean, nullable=False),
    Column("number", BigInteger, nullable=False),
)
# Experiments that may have other numbers by now. Whoever was writing as the transaction ``seen_by`` began has to end
# before they are counted.
archived_trial_changes = Table(
    "archived_trial_changes",
    metadata,
    Column("experiment_id", BigInteger, nullable=False),
    Column("seen_by", BigInteger),
)

# What runs are filtered by, in the order of indexes: triggers (migration 0027) keep it true. Of metrics these are the
# ones of validation, of trials that have ended: no report of another writes a row.
run_numbers = Table(
    "run_numbers",
    metadata,
    Column("project_id", BigInteger, primary_key=True, autoincrement=False),
    # metric_name_key of hp.<name> or validation.<metric>.<aggregate>
    Column("column_key", Text(collation="C"), primary_key=True),
    # number_for_index of the value
    Column("number", Numeric, primary_key=True),
    Column("trial_id", BigInteger, primary_key=True, autoincrement=False),
    Column("experiment_id", BigInteger, nullable=False),
    Column("archived", Boolean, nullable=False),
)
# The same of hyperparameters that are neither numbers nor true nor false.
run_texts = Table(
    "run_texts",
    metadata,
    Column("project_id", BigInteger, primary_key=True, autoincrement=False),
    Column("column_key", Text(collation="C"), primary_key=True),
    # metric_name_key of the text
    Column("text_key", Text(collation="C"), primary_key=True),
    Column("trial_id", BigInteger, primary_key=True, autoincrement=False),
    Column("experiment_id", BigInteger, nullable=False),
    Column("archived", Boolean, nullable=False),
)
# Trials with so many values of a kind (hyperparameter, metric) that they have none of them in these tables.
loose_runs = Table(
    "loose_runs",
    metadata,
    Column("trial_id", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, primary_key=True),
)

trial_tasks = Table(
    "trial_tasks",
    metadata,
    Column("trial_id", BigInteger, ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True),
    # 0 is the first; a continued trial has more.
    Column("position", Integer, primary_key=True),
    Column("task_id", Text, nullable=False, unique=True),
)

# Addresses KEY-n that trials had in projects they were moved out of, with every key that such a project had until then:
# what somebody wrote down goes on to lead to the trial. Written by the api.
former_addresses = Table(
    "former_addresses",
    metadata,
    Column("key", Text, primary_key=True),
    Column("local_id", Integer, primary_key=True),
    Column("trial_id", BigInteger, ForeignKey("trials.id", ondelete="CASCADE"), nullable=False, index=True),
)

# Trials that were deleted by themselves, while their metrics and log lines are there, which may be millions. Written by
# the api with the deletion of the row; the scheduler deletes the rest piece by piece, and then the row here.
deleted_trials = Table(
    "deleted_trials",
    metadata,
    Column("trial_id", BigInteger, primary_key=True, autoincrement=False),
    document("task_ids", nullable=False),
    moment("deleted_at", nullable=False),
)
