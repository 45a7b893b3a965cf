"""Notebooks, TensorBoards, shells and commands: what their tasks have beyond those of other types.

Written by the api when they are launched; ``last_active_at`` also by its proxy.
"""

from __future__ import annotations

from sqlalchemy import Column, Float, ForeignKey, Table, Text

from libs.db.tables.metadata import document, metadata, moment

interactive_tasks = Table(
    "interactive_tasks",
    metadata,
    Column("task_id", Text, ForeignKey("tasks.task_id", ondelete="CASCADE"), primary_key=True),
    Column("description", Text, nullable=False),
    # The final configuration, as clients see it (docs/reference/tasks-and-cli.md 2.4).
    document("config", nullable=False),
    # Seconds without use after which it is ended; NULL is never.
    Column("idle_timeout_s", Float),
    # Of shells: the pair that their users log in with.
    Column("private_key", Text),
    Column("public_key", Text),
    # Of TensorBoards: what they were asked to show.
    document("experiment_ids", default="[]"),
    document("trial_ids", default="[]"),
    # The last request through the proxy, or report of the task that somebody uses it.
    moment("last_active_at"),
)
