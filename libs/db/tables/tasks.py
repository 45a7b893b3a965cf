"""Jobs (what users submitted), tasks, and allocations (attempts to run a task)."""

from __future__ import annotations

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
    Sequence,
    Table,
    Text,
    text,
)

from libs.db.tables.metadata import document, metadata, moment, serial_id
from libs.tracing import current_traceparent

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", Text, primary_key=True),
    # EXPERIMENT, NOTEBOOK, TENSORBOARD, SHELL, COMMAND, CHECKPOINT_GC, GENERIC
    Column("job_type", Text, nullable=False),
    Column("owner_id", BigInteger, ForeignKey("users.id"), nullable=False),
    Column("workspace_id", BigInteger, nullable=False, server_default="1"),
    Column("pool", Text, nullable=False),
    Column("priority", Integer),
    Column("weight", Float, nullable=False, server_default="1"),
    Column("max_slots", Integer),
    moment("submitted_at", nullable=False),
    # Where it stands among those of its priority, after it was moved (libs/job_rank.py); NULL is submitted_at.
    Column("queue_position", Numeric),
    # Trace context of the request that submitted it, where that is traced.
    Column("traceparent", Text, default=current_traceparent),
)

tasks = Table(
    "tasks",
    metadata,
    Column("task_id", Text, primary_key=True),
    Column("task_type", Text, nullable=False),
    Column("job_id", Text, index=True),
    # Of trials and of checkpoint GC: the experiment they belong to.
    Column("experiment_id", BigInteger, index=True),
    Column("owner_id", BigInteger, ForeignKey("users.id"), nullable=False),
    Column("workspace_id", BigInteger, nullable=False, server_default="1"),
    moment("start_time", nullable=False),
    moment("end_time"),
    # What to launch, for task types other than TRIAL (libs/tasks/stored.py).
    document("spec"),
    # Log lines that matched a policy cancel_retries: list of {regex, log}; written by the logs service.
    document("cancel_retries", default="[]"),
    # tar.gz of the uploaded context, for task types other than TRIAL.
    Column("context_tgz", LargeBinary),
)

# What a row of tasks has beyond that when it is of type GENERIC. The api writes the states that users ask for, the
# scheduler what has become of them (libs/states/generic_task.py).
generic_tasks = Table(
    "generic_tasks",
    metadata,
    Column("task_id", Text, ForeignKey("tasks.task_id", ondelete="CASCADE"), primary_key=True),
    # Of the whole tree, and never changed. It and the parent may be in another workspace, and be gone with that.
    Column("root_id", Text, nullable=False, index=True),
    Column("parent_id", Text),
    Column("forked_from", Text),
    # NULL when nobody said: then it is paused when that is asked of it, and not together with others.
    Column("no_pause", Boolean),
    Column("state", Text, nullable=False, index=True),
    # As submitted, over that of the task it was forked from.
    document("config", nullable=False),
)

allocations = Table(
    "allocations",
    metadata,
    Column("allocation_id", Text, primary_key=True),
    Column("task_id", Text, ForeignKey("tasks.task_id", ondelete="CASCADE"), nullable=False, index=True),
    Column("job_id", Text, nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("pool", Text, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("num_pods", Integer, nullable=False, server_default="1"),
    Column("preemptible", Boolean, nullable=False, server_default=text("false")),
    Column("preemption_timeout_s", Integer, nullable=False, server_default="3600"),
    # How long the task may run, all of its allocations together, and how long those before this one have; seconds.
    Column("time_limit_s", Integer),
    Column("ran_before_s", Float, nullable=False, server_default="0"),
    # PENDING, ASSIGNED, PULLING, STARTING, RUNNING, WAITING, TERMINATING, TERMINATED: moves forward only.
    Column("state", Text, nullable=False),
    moment("requested_at", nullable=False),
    # When the planner gave it its slots; they are held until released_at.
    moment("assigned_at"),
    moment("start_time"),
    moment("end_time"),
    moment("released_at"),
    Column("is_ready", Boolean, nullable=False, server_default=text("false")),
    # Newest observation applied, and the pods it showed (list of ObservedPod).
    Column("revision", BigInteger, nullable=False, server_default="0"),
    document("pods", default="[]"),
    # Where the planner saw room for each pod when it gave the slots: list of {node, slots} in rank order.
    document("places", default="[]"),
    # Why it is still PENDING, for its owner to read.
    Column("wait_reason", Text, nullable=False, server_default=""),
    document("ports", default="{}"),
    Column("proxy_address", Text),
    document("blocked_nodes", default="[]"),
    # Where its workspace was bound to when it got its slots; '' is the namespace of the pool. Never changes afterwards.
    Column("namespace", Text, nullable=False, server_default=""),
    # With which it was ordered to run; in a cluster its pods keep it.
    Column("priority", Integer),
    # Graceful: the task is asked to leave, and killed at the deadline. A reason without preempted_at is a request of
    # the api, with which the scheduler has done nothing yet.
    moment("preempted_at"),
    moment("preempt_deadline"),
    Column("preempt_reason", Text),
    Column("preempt_acked", Boolean, nullable=False, server_default=text("false")),
    # Not graceful; a reason without killed_at is again a request of the api. killed_while_running: asked for before any
    # of its pods had ended by itself.
    moment("killed_at"),
    Column("kill_reason", Text),
    Column("killed_while_running", Boolean, nullable=False, server_default=text("false")),
    Column("exit_reason", Text),
    Column("exit_error", Text),
    # '' or the class of the failure that decides what its owner does: FAILED, TRANSIENT, INVALID, INTERNAL
    Column("exit_kind", Text, nullable=False, server_default=""),
    # It ended with exit code 0 and nobody had asked it to.
    Column("stopped_early", Boolean, nullable=False, server_default=text("false")),
    Column("status_code", Integer),
    # When the scheduler wrote the last lines about an attempt at a trial, which are stored before the trial moves, and
    # whether log policies forbid another attempt, as was decided then.
    moment("explained_at"),
    Column("retries_canceled", Boolean, nullable=False, server_default=text("false")),
    # The owner of the task has reacted to the end of this allocation.
    Column("exit_processed", Boolean, nullable=False, server_default=text("false")),
    # Trace context of what decided about it last: who requested it, then who gave it its slots.
    Column("traceparent", Text),
)
Index("ix_allocations_live", allocations.c.pool, postgresql_where=text("released_at IS NULL"))
Index("ix_allocations_exit_unprocessed", allocations.c.task_id, postgresql_where=text("NOT exit_processed"))

# What plans remember of allocations that wait (services/scheduler/queue/queue_states.py); gone when they do not.
# Only the scheduler writes it. It refers to nothing, so that making it locks nothing.
queue_states = Table(
    "queue_states",
    metadata,
    Column("pool", Text, primary_key=True),
    Column("allocation_id", Text, primary_key=True),
    # Since when it is the first of its priority that has no room, and how many behind it have started since.
    moment("blocked_at"),
    Column("overtaken", Integer, nullable=False, server_default="0"),
    # Places that others were asked to leave for it: list of {node, slots} in rank order.
    document("nominated", default="[]"),
)

# Pools in which tasks of a job may start beside its own (resources.fallback_pools). The api writes the rows with the
# job; the scheduler closes those of jobs that have ended, and removes those of which nothing is left. It refers to
# nothing, so that making it locks nothing.
pool_offers = Table(
    "pool_offers",
    metadata,
    Column("job_id", Text, primary_key=True),
    Column("pool", Text, primary_key=True),
    # 0 is the pool in which the job was queued, which offers nothing by its row; the others in the order of the user.
    Column("rank", Integer, nullable=False),
    # How long an allocation waits before it may start there, from its request.
    Column("after_s", Float, nullable=False),
    # How it would run there.
    Column("num_pods", Integer, nullable=False),
    Column("time_limit_s", Integer),
    # What is different there in the configuration of an experiment, or in the specification of another task
    # (libs/config/differences.py): it comes from the defaults of the pool.
    document("changes", default="{}"),
    # Until nothing of the job runs or waits any more.
    Column("is_open", Boolean, nullable=False, server_default=text("true")),
)
Index("ix_pool_offers_pool", pool_offers.c.pool, postgresql_where=text("is_open"))

# For whom the cluster is asked for nodes, or was in vain (services/scheduler/queue/growth_rows.py); gone when nothing
# waits any more. Only the scheduler writes it. It refers to nothing, so that making it locks nothing.
pool_growths = Table(
    "pool_growths",
    metadata,
    Column("pool", Text, primary_key=True),
    Column("allocation_id", Text, primary_key=True),
    # Of it, that need nodes which are not there; how many such nodes, and slots of each.
    Column("pods", Integer, nullable=False),
    Column("nodes", Integer, nullable=False),
    Column("node_slots", Integer, nullable=False),
    moment("gives_up_at", nullable=False),
    # Names of those that were there when the cluster was asked.
    document("known_nodes", nullable=False),
    # Held for its other pods: list of {node, slots}.
    document("places", nullable=False),
    # The order of the launcher (libs/events/orders.py).
    document("placeholders", nullable=False),
    # How often the cluster was asked.
    Column("attempts", Integer, nullable=False),
    # Null while it is asked; else when it may be again.
    moment("rests_until"),
)
Index("uq_pool_growths_now", pool_growths.c.pool, unique=True, postgresql_where=text("rests_until IS NULL"))

# Trials that were moved to make room (services/scheduler/queue/moving/moves.py); kept for a day. Only the scheduler
# writes it, and it refers to nothing.
consolidation_moves = Table(
    "consolidation_moves",
    metadata,
    serial_id(),
    Column("pool", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    # That was asked to leave; the next one of the task gets the places.
    Column("allocation_id", Text, nullable=False),
    Column("made_room_for", Text, nullable=False),
    # List of {node, slots} in rank order.
    document("places", nullable=False),
    moment("moved_at", nullable=False),
    # When the places were not kept any more: it has started there, or will not.
    moment("settled_at"),
)
Index("ix_consolidation_moves_pool", consolidation_moves.c.pool, consolidation_moves.c.moved_at)

# Why allocations wait (services/scheduler/queue/wait_notes.py); gone when they do not. Only the scheduler writes it. It
# refers to nothing, so that making it locks nothing.
wait_notes = Table(
    "wait_notes",
    metadata,
    Column("task_id", Text, primary_key=True),
    Column("allocation_id", Text, primary_key=True),
    # Of the reason: a name that programs compare, and the text that its sentence in wait_reason begins with. Where the
    # sentence begins with something else, a scheduler of the release before has written it, and the code is not its.
    Column("code", Text, nullable=False),
    Column("reason", Text, nullable=False),
    # Since when that is the reason.
    moment("since", nullable=False),
    # The sentence that the log of its task had last, and when.
    Column("told", Text, nullable=False, server_default=""),
    moment("told_at"),
)

# When allocations that wait are expected to start (services/scheduler/forecast); gone when they do not wait any more.
# Only the scheduler writes these two; they refer to nothing, as wait_notes.
start_estimates = Table(
    "start_estimates",
    metadata,
    Column("allocation_id", Text, primary_key=True),
    Column("pool", Text, nullable=False),
    # NULL where nothing that is expected leads to its start.
    moment("estimated_at"),
    Column("basis", Text, nullable=False),
    # Other jobs that are before it in the queue, and slots that these want.
    Column("jobs_ahead", Integer, nullable=False),
    Column("slots_ahead", Integer, nullable=False),
    moment("made_at", nullable=False),
    # The first instant that was estimated, and when that was.
    moment("first_estimate"),
    moment("first_made_at"),
)

# First estimates of allocations that have started since; the oldest are forgotten.
estimate_errors = Table(
    "estimate_errors",
    metadata,
    Column("allocation_id", Text, primary_key=True),
    Column("pool", Text, nullable=False),
    moment("made_at", nullable=False),
    moment("estimated_at", nullable=False),
    moment("started_at", nullable=False),
)
Index("ix_estimate_errors_started_at", estimate_errors.c.started_at)

# What each allocation has used, for reports: it stays when its task, its experiment or its workspace is moved or gone,
# and so refers to none of them. A trigger on allocations writes it, so that nobody can forget to.
allocation_usage = Table(
    "allocation_usage",
    metadata,
    Column("allocation_id", Text, primary_key=True),
    Column("task_id", Text, nullable=False),
    Column("task_type", Text, nullable=False),
    Column("owner_id", BigInteger, nullable=False),
    # Where it was requested.
    Column("workspace_name", Text, nullable=False),
    # NULL of those that came before this column.
    Column("workspace_id", BigInteger),
    # Of trials and of checkpoint GC.
    Column("experiment_id", BigInteger),
    # Of the experiment as it was requested; as long as there is one, its present labels count.
    document("labels", default="[]"),
    Column("pool", Text, nullable=False),
    Column("slots", Integer, nullable=False),
    moment("requested_at", nullable=False),
    moment("start_time"),
    moment("end_time"),
)
Index("ix_allocation_usage_start_time", allocation_usage.c.start_time)
Index("ix_allocation_usage_end_time", allocation_usage.c.end_time)

gather_members = Table(
    "gather_members",
    metadata,
    Column("allocation_id", Text, ForeignKey("allocations.allocation_id", ondelete="CASCADE"), primary_key=True),
    Column("request_uuid", Text, primary_key=True),
    Column("num_peers", Integer, nullable=False),
    document("data", nullable=False),
    # Which request holds this membership: a second join with the same uuid takes it over.
    Column("holder", Text, nullable=False),
    # What all members brought, once they were complete; the next group of the allocation begins without those that
    # have it. Kept, so that a request that is repeated gets the answer that was lost.
    document("gathered"),
    moment("joined_at", default_now=True),
    # Refreshed while the request waits; members nobody waits for any more (a killed api) do not count for ever.
    moment("seen_at", default_now=True),
    # When the owner of the task was told that it takes long.
    moment("noted_at"),
)

# Of allocations whose training code asks whether to leave; gone with their end. The api writes when it was asked last
# (libs/tasks/preemption_polls.py), the scheduler that it has told of an absence.
preemption_polls = Table(
    "preemption_polls",
    metadata,
    Column("allocation_id", Text, ForeignKey("allocations.allocation_id", ondelete="CASCADE"), primary_key=True),
    # At most a minute old as long as a poll is open.
    moment("polled_at", nullable=False),
    # When the owner of the task was told that the polls have stopped; NULL again with the next poll.
    moment("absence_noted_at"),
)

accelerator_data = Table(
    "accelerator_data",
    metadata,
    serial_id(),
    Column(
        "allocation_id",
        Text,
        ForeignKey("allocations.allocation_id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("task_id", Text, nullable=False, index=True),
    Column("node_name", Text, nullable=False, server_default=""),
    Column("container_id", Text, nullable=False, server_default=""),
    Column("accelerator_type", Text, nullable=False, server_default=""),
    document("accelerator_uuids", default="[]"),
)

# Orders the lines that services add to the log of a task (libs/db/task_lines.py).
task_line_seq = Sequence("task_line_seq", metadata=metadata)
