"""Tasks and their allocations: all of them have ended, except the tasks of trials that wait to be activated."""

from __future__ import annotations

from typing import Final

from deploy.determined_import.kinds.copied import CopiedTable
from deploy.determined_import.kinds.rules import TRIAL_IS_OPEN, json_object, members, run_is_there, utc
from libs.db.tables.tasks import accelerator_data, allocations, generic_tasks, tasks
from libs.db.tables.trials import trial_tasks

_TASK_END: Final = utc("coalesce(t.end_time, a.end_time, a.start_time, t.start_time)")

# A trial that was continued has a task for each time; only the last one goes on.
_WAS_CONTINUED: Final = """EXISTS (SELECT FROM run_id_task_id y JOIN tasks later ON later.task_id = y.task_id
    WHERE y.run_id = r.id AND (later.start_time, later.task_id) > (t.start_time, t.task_id))"""

TASKS: Final = CopiedTable(
    kind="tasks",
    target=tasks,
    rows="tasks t",
    joins="""LEFT JOIN jobs j ON j.job_id = t.job_id
        LEFT JOIN (
            SELECT task_id, min(run_id) AS run_id FROM run_id_task_id GROUP BY task_id
        ) x ON x.task_id = t.task_id
        LEFT JOIN runs r ON r.id = x.run_id LEFT JOIN experiments e ON e.id = r.experiment_id
        LEFT JOIN projects p ON p.id = e.project_id
        LEFT JOIN (
            SELECT DISTINCT ON (a.task_id) a.task_id, a.start_time, a.end_time, i.workspace_id FROM allocations a
            LEFT JOIN allocation_workspace_info i ON i.allocation_id = a.allocation_id
            ORDER BY a.task_id, a.start_time DESC NULLS LAST
        ) a ON a.task_id = t.task_id
        LEFT JOIN task_context_directory d ON d.task_id = t.task_id""",
    key="t.task_id",
    key_type="text",
    columns={
        "task_id": "t.task_id",
        "task_type": "t.task_type::text",
        "job_id": "t.job_id",
        "experiment_id": "e.id",
        "owner_id": "coalesce(j.owner_id, e.owner_id, 1)",
        "workspace_id": "coalesce(p.workspace_id, a.workspace_id, 1)",
        "start_time": utc("t.start_time"),
        "end_time": f"CASE WHEN e.id IS NULL OR NOT {TRIAL_IS_OPEN} OR {_WAS_CONTINUED} THEN {_TASK_END} END",
        "context_tgz": "d.context_directory",
    },
    batch_rows=100_000,
)

# Nothing of them runs any more, and without what launched them they cannot go on; they can be forked.
GENERIC_TASKS: Final = CopiedTable(
    kind="generic tasks",
    target=generic_tasks,
    rows="(SELECT * FROM tasks WHERE task_type = 'GENERIC') t",
    key="t.task_id",
    key_type="text",
    columns={
        "task_id": "t.task_id",
        "root_id": """(
            WITH RECURSIVE above AS (
                SELECT t.task_id, t.parent_id
                UNION SELECT p.task_id, p.parent_id FROM tasks p JOIN above ON p.task_id = above.parent_id
            ) SELECT task_id FROM above WHERE parent_id IS NULL
        )""",
        "parent_id": "t.parent_id",
        "forked_from": "t.forked_from",
        "no_pause": "t.no_pause",
        "state": "CASE WHEN t.task_state::text IN ('COMPLETED', 'ERROR') THEN t.task_state::text ELSE 'CANCELED' END",
        "config": json_object("t.config"),
    },
    batch_rows=100_000,
)

TRIAL_TASKS: Final = CopiedTable(
    kind="tasks of trials",
    target=trial_tasks,
    rows="run_id_task_id x",
    joins="JOIN tasks t ON t.task_id = x.task_id",
    key="x.run_id",
    columns={
        "trial_id": "x.run_id",
        "position": "row_number() OVER (PARTITION BY x.run_id ORDER BY t.start_time, x.task_id) - 1",
        "task_id": "x.task_id",
    },
    skipped={
        "the trial is missing": f"NOT {run_is_there('x.run_id')}",
        "the task is that of an earlier trial": "EXISTS (SELECT FROM run_id_task_id o"
        " WHERE o.task_id = x.task_id AND o.run_id < x.run_id)",
    },
    batch_rows=100_000,
)

ALLOCATIONS: Final = CopiedTable(
    kind="allocations",
    target=allocations,
    rows="allocations a",
    joins="JOIN tasks t ON t.task_id = a.task_id",
    key="a.allocation_id",
    key_type="text",
    columns={
        "allocation_id": "a.allocation_id",
        "task_id": "a.task_id",
        "job_id": "coalesce(t.job_id, '')",
        "name": "t.task_type::text",
        "pool": "a.resource_pool",
        "slots": "a.slots",
        "state": "'TERMINATED'",
        "requested_at": utc("coalesce(a.start_time, t.start_time)"),
        "assigned_at": utc("a.start_time"),
        "start_time": utc("a.start_time"),
        "end_time": utc("coalesce(a.end_time, t.end_time, a.start_time, t.start_time)"),
        "released_at": utc("coalesce(a.end_time, t.end_time, a.start_time, t.start_time)"),
        "is_ready": "coalesce(a.is_ready, false)",
        "ports": members("a.ports", "number"),
        "proxy_address": "a.proxy_address",
        "exit_reason": "a.exit_reason",
        "exit_error": "a.exit_error",
        "status_code": "a.status_code",
        "exit_processed": "true",
    },
    batch_rows=100_000,
)

ACCELERATORS: Final = CopiedTable(
    kind="accelerators of allocations",
    target=accelerator_data,
    rows="allocation_accelerators x",
    joins="JOIN allocations a ON a.allocation_id = x.allocation_id",
    key="x.id",
    columns={
        "id": "x.id",
        "allocation_id": "x.allocation_id",
        "task_id": "a.task_id",
        "node_name": "x.node_name",
        "container_id": "x.container_id",
        "accelerator_type": "x.accelerator_type",
        "accelerator_uuids": "coalesce(to_jsonb(x.accelerator_uuids), '[]')",
    },
)
