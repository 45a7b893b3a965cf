"""Resync: finds, with a few cheap queries, the objects whose event was missed.

Source of the conditions: each is the absence of something that ``reconcile`` and its kind would bring about.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from sqlalchemy import text

from libs.clock import Clock
from libs.db.engine import Database
from services.scheduler.workqueue.work_queue import Request

# Experiments that live, but whose trials or allocations are not as they should be.
_EXPERIMENTS: Final = text("""
    SELECT e.id FROM experiments e
    LEFT JOIN searcher_snapshots s ON s.experiment_id = e.id
    WHERE e.end_time IS NULL AND NOT e.unmanaged
      AND (e.state LIKE 'STOPPING%' OR (e.state IN ('ACTIVE', 'PAUSED') AND s.experiment_id IS NULL))
    UNION
    SELECT t.experiment_id FROM trials t
    JOIN experiments e ON e.id = t.experiment_id AND e.end_time IS NULL AND NOT e.unmanaged
    JOIN jobs j ON j.job_id = e.job_id
    LEFT JOIN LATERAL (
        SELECT a.* FROM trial_tasks k JOIN allocations a ON a.task_id = k.task_id AND NOT a.exit_processed
        WHERE k.trial_id = t.id LIMIT 1
    ) a ON true
    WHERE t.end_time IS NULL AND (
        (t.state IN ('ACTIVE', 'PAUSED') AND t.state <> e.state)
        OR (t.state = 'ACTIVE' AND a.allocation_id IS NULL AND (t.not_before IS NULL OR t.not_before <= :now))
        OR (t.state <> 'ACTIVE' AND t.state <> 'PAUSED' AND a.allocation_id IS NULL)
        OR (a.allocation_id IS NOT NULL
            AND a.preempted_at IS NULL AND a.killed_at IS NULL AND a.released_at IS NULL
            AND (t.state <> 'ACTIVE' OR a.priority <> j.priority
                 OR (a.pool <> j.pool AND (a.assigned_at IS NULL OR NOT EXISTS (
                     SELECT FROM pool_offers o WHERE o.job_id = j.job_id AND o.pool = a.pool AND o.rank > 0)))))
        OR (t.state IN ('STOPPING_KILLED', 'STOPPING_ERROR') AND a.killed_at IS NULL AND a.released_at IS NULL)
        OR a.preempt_deadline <= :now AND a.killed_at IS NULL
        OR t.early_exit_deadline <= :now
    )
    UNION
    SELECT experiment_id FROM searcher_events
""")
_ALL_EXPERIMENTS: Final = text("SELECT id FROM experiments WHERE end_time IS NULL AND NOT unmanaged")
# Files that somebody has asked to be deleted; a deletion takes everything anyway.
_GC_REQUESTS: Final = text("""
    SELECT DISTINCT r.experiment_id FROM checkpoint_gc_requests r
    JOIN experiments e ON e.id = r.experiment_id AND e.state <> 'DELETING'
""")
_DELETIONS: Final = text("SELECT id FROM experiments WHERE state = 'DELETING'")
_DELETED_TRIALS: Final = text("SELECT trial_id FROM deleted_trials")
_ENDED: Final = text("SELECT allocation_id FROM allocations WHERE NOT exit_processed AND state = 'TERMINATED'")
# Generic tasks that are to stop, or have nothing that runs them.
_GENERIC_TASKS: Final = text("""
    SELECT g.task_id FROM generic_tasks g
    WHERE g.state IN ('STOPPING_PAUSED', 'STOPPING_CANCELED')
       OR (g.state = 'ACTIVE'
           AND NOT EXISTS (SELECT 1 FROM allocations a WHERE a.task_id = g.task_id AND NOT a.exit_processed))
""")
_PROJECTS: Final = text("SELECT id FROM projects WHERE state = 'DELETING'")
_WORKSPACES: Final = text("SELECT id FROM workspaces WHERE state = 'DELETING'")
# Workspaces that are gone, while namespaces that were made for them may not be.
_NAMESPACES: Final = text("""
    SELECT DISTINCT n.workspace_id FROM auto_created_namespaces n
    WHERE NOT EXISTS (SELECT 1 FROM workspaces w WHERE w.id = n.workspace_id)
      AND (n.claimed_until IS NULL OR n.claimed_until <= :now)
""")

Kind = Literal[
    "experiment",
    "deletion",
    "deleted trial",
    "allocation",
    "generic task",
    "project",
    "workspace",
    "namespaces",
]


async def missed_requests(db: Database, clock: Clock, *, everything: bool = False) -> Iterator[Request]:
    """What to reconcile; ``everything`` adds all experiments that live, for a scheduler that has just begun."""
    queries: tuple[tuple[Kind, object], ...] = (
        ("experiment", _ALL_EXPERIMENTS if everything else _EXPERIMENTS),
        ("experiment", _GC_REQUESTS),
        ("deletion", _DELETIONS),
        ("deleted trial", _DELETED_TRIALS),
        ("allocation", _ENDED),
        ("generic task", _GENERIC_TASKS),
        ("project", _PROJECTS),
        ("workspace", _WORKSPACES),
        ("namespaces", _NAMESPACES),
    )
    found: list[Request] = []
    async with db.read() as connection:
        for kind, query in queries:
            parameters = {"now": clock.now()} if query is _EXPERIMENTS or query is _NAMESPACES else {}
            rows = (await connection.execute(query, parameters)).scalars()  # type: ignore[call-overload]
            found += [Request(kind, ident) for ident in rows]
    return iter(found)
