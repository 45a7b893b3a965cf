"""Rows beside experiments that commands show, the same in a database of any size: tasks that are over, lines of logs, a
template, a group."""

from __future__ import annotations

from typing import Final

import asyncpg

from tests.bench.reading.large_commands import GENERIC

_KINDS: Final = {
    "command-1": "COMMAND",
    "notebook-1": "NOTEBOOK",
    "shell-1": "SHELL",
    "tensorboard-1": "TENSORBOARD",
    GENERIC: "GENERIC",
}
"""By the id of the task."""
_TASKS: Final = (
    f"""(VALUES {", ".join(f"('{ident}', '{kind}')" for ident, kind in _KINDS.items())}) AS one (id, kind)"""
)
_SPEC: Final = """jsonb_build_object('description', id, 'argv', '["true"]'::jsonb)"""

_STATEMENTS: Final = (
    f"""INSERT INTO jobs (job_id, job_type, owner_id, pool, submitted_at)
        SELECT 'of-' || id, kind, 2, 'default', now() FROM {_TASKS}""",
    f"""INSERT INTO tasks (task_id, task_type, job_id, owner_id, workspace_id, spec, start_time, end_time)
        SELECT id, kind, 'of-' || id, 2, 1, {_SPEC}, now() - interval '1 hour', now() FROM {_TASKS}""",
    f"""INSERT INTO interactive_tasks (task_id, description, config)
        SELECT id, id, jsonb_build_object('description', id) FROM {_TASKS} WHERE kind <> 'GENERIC'""",
    """INSERT INTO generic_tasks (task_id, root_id, state, config)
       SELECT task_id, task_id, 'COMPLETED', '{"entrypoint": ["true"]}' FROM tasks WHERE task_type = 'GENERIC'""",
    f"""INSERT INTO allocations (allocation_id, task_id, job_id, name, pool, slots, state, requested_at, start_time,
                                 end_time, released_at, exit_processed)
        SELECT id || '.1', id, 'of-' || id, id, 'default', 0, 'TERMINATED', now() - interval '1 hour', now(), now(),
               now(), true FROM {_TASKS}""",
    # Of a few lines each, so that those of one task are found among those of all.
    """INSERT INTO task_logs (task_id, ingested_at, timestamp, log, level, stdtype, allocation_id)
       SELECT task_id, now(), now(), convert_to('line ' || n, 'UTF8'), 'INFO', 'stdout', task_id || '.1'
       FROM tasks, generate_series(1, 5) n""",
    """INSERT INTO log_streams (stream_key, task_id, allocation_id, contiguous, next_seq, missing, end_seq, seen_seq,
                                opened_at, written_at, sealed_at)
       SELECT task_id || '.1', task_id, task_id || '.1', true, 5, '{}', 5, 5, now(), now(), now() FROM tasks""",
    """INSERT INTO model_definitions (experiment_id, tgz, size_bytes)
       SELECT id, decode(repeat('00', 1024), 'hex'), 1024 FROM experiments WHERE config->>'name' = 'shown'""",
    """INSERT INTO user_sessions (user_id, token_hash, token_type, expires_at)
       VALUES (2, decode('00', 'hex'), 'ACCESS', now() + interval '30 days')""",
    """INSERT INTO cluster_message (id, message, start_time, created_by) VALUES (1, 'busy', now(), 1)""",
    """INSERT INTO templates (name, config) VALUES ('usual', '{"max_restarts": 2}')""",
    "INSERT INTO groups (name) VALUES ('lab')",
    """INSERT INTO group_members (group_id, user_id)
       SELECT g.id, u.id FROM groups g, users u WHERE g.name = 'lab' AND u.username LIKE 'person%'""",
)


async def insert_others(connection: asyncpg.Connection) -> None:
    """After all tasks of experiments, which get lines of a log as well."""
    for statement in _STATEMENTS:
        await connection.execute(statement)
