"""What the database of an old installation holds, as people know it: object by object, without a look at the import.

The names of fields are those by which the client calls them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any, Final

Objects = dict[str, dict[str, Any]]

ENDED: Final = {"ACTIVE": "PAUSED", "DELETING": "DELETE_FAILED", "STOPPING_CANCELED": "CANCELED"}
"""What is imported in another state than it had."""


async def objects_of(connection: Any) -> Objects:
    """Kind -> key, as JSON has it -> fields; through a connection of asyncpg."""
    found = {
        "users": await _users(connection),
        "groups": await _groups(connection),
        "workspaces": await _rows(connection, _WORKSPACES),
        "projects": await _rows(connection, _PROJECTS),
        "templates": await _rows(connection, "SELECT name AS ident, config, workspace_id FROM templates"),
        "webhooks": await _rows(connection, "SELECT id AS ident, url, name, workspace_id FROM webhooks"),
        "experiments": await _rows(connection, _EXPERIMENTS),
        "trials": await _rows(connection, _TRIALS),
        "metrics": await _metrics(connection),
        "logs": await _logs(connection),
        "checkpoints": await _rows(connection, _CHECKPOINTS),
        "models": await _rows(connection, _MODELS),
    }
    for kind in ("experiments", "trials", "checkpoints"):
        for each in found[kind].values():
            each["state"] = f"STATE_{ENDED.get(each['state'], each['state'])}"
    return found


_WORKSPACES: Final = "SELECT id AS ident, name, archived, immutable, user_id FROM workspaces"
_PROJECTS: Final = """
    SELECT id AS ident, name, key, workspace_id, user_id, archived, coalesce(description, '') AS description,
           coalesce(notes, '[]') AS notes
    FROM projects"""
_EXPERIMENTS: Final = """
    SELECT e.id AS ident, e.config ->> 'name' AS name, e.state::text, e.config -> 'labels' AS labels, e.notes,
           e.owner_id AS user_id, e.project_id, e.job_id, e.start_time, e.end_time, e.progress, e.best_trial_id,
           e.checkpoint_count, e.checkpoint_size::text, e.archived, e.config, e.original_config,
           (SELECT coalesce(json_agg(r.id ORDER BY r.id), '[]') FROM runs r WHERE r.experiment_id = e.id) AS trial_ids
    FROM experiments e"""
_TRIALS: Final = """
    SELECT r.id AS ident, r.experiment_id, r.state::text, r.hparams,
           coalesce(r.total_batches, 0) AS total_batches_processed, r.restarts,
           r.start_time, r.end_time, r.summary_metrics, r.searcher_metric_value, d.metadata,
           (SELECT coalesce(json_agg(t.task_id ORDER BY t.task_id), '[]') FROM run_id_task_id t WHERE t.run_id = r.id)
             AS task_ids
    FROM runs r LEFT JOIN runs_metadata d ON d.run_id = r.id"""
_CHECKPOINTS: Final = """
    SELECT c.uuid::text AS ident, x.run_id AS trial, c.state::text, c.task_id AS task, c.resources, c.metadata,
           c.report_time
    FROM checkpoints_v2 c JOIN run_checkpoints x ON x.checkpoint_id = c.uuid"""
_MODELS: Final = """
    SELECT m.id AS ident, m.name, to_json(m.labels) AS labels, m.metadata, u.username AS owner,
           m.workspace_id AS workspace,
           (SELECT coalesce(json_agg(json_build_array(v.version, v.name, v.checkpoint_uuid) ORDER BY v.version DESC),
                            '[]')
            FROM model_versions v WHERE v.model_id = m.id) AS versions
    FROM models m JOIN users u ON u.id = m.user_id"""


async def _rows(connection: Any, query: str) -> dict[str, Any]:
    types = {each.name: each.type.name for each in (await connection.prepare(query)).get_attributes()}
    found = {}
    for row in await connection.fetch(query):
        fields = {_camel(name): _plain(value, types[name]) for name, value in row.items()}
        found[str(fields.pop("ident"))] = fields
    return found


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.title() for other in others)


def _plain(value: Any, type_name: str) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=value.tzinfo or UTC).isoformat()
    return json.loads(value) if type_name in ("json", "jsonb") and value is not None else value


async def _users(connection: Any) -> dict[str, Any]:
    query = """
        SELECT u.id AS ident, u.username, coalesce(u.display_name, '') AS display_name, u.admin, u.active, u.remote,
               CASE WHEN a.uid IS NOT NULL THEN json_build_object(
                    'agentUid', a.uid, 'agentUser', a.user_, 'agentGid', a.gid, 'agentGroup', a.group_)
               END AS agent_user_group
        FROM users u LEFT JOIN agent_user_groups a ON a.user_id = u.id"""
    return await _rows(connection, query)


async def _groups(connection: Any) -> dict[str, Any]:
    query = """
        SELECT g.id AS ident, g.group_name AS name, json_agg(m.user_id ORDER BY m.user_id) AS users
        FROM groups g JOIN user_group_membership m ON m.group_id = g.id WHERE g.user_id IS NULL
        GROUP BY g.id, g.group_name"""
    return await _rows(connection, query)


async def _metrics(connection: Any) -> dict[str, Any]:
    """Of each trial what was not rolled back; of several reports of a group at one step, the last."""
    query = """
        SELECT DISTINCT ON (trial_id, partition_type, metric_group, total_batches)
               trial_id, coalesce(metric_group, lower(partition_type)) AS of_group, total_batches, metrics::text
        FROM metrics WHERE NOT archived AND jsonb_typeof(metrics) = 'object'
        ORDER BY trial_id, partition_type, metric_group, total_batches, id DESC"""
    found: dict[str, list[Any]] = defaultdict(list)
    for trial in await connection.fetch("SELECT id FROM runs"):
        found[str(trial["id"])] = []
    for row in await connection.fetch(query):
        values = json.loads(row["metrics"])
        found[str(row["trial_id"])].append([row["of_group"], row["total_batches"], values])
    return {trial: sorted(each, key=lambda one: json.dumps(one, sort_keys=True)) for trial, each in found.items()}


async def _logs(connection: Any) -> dict[str, Any]:
    """Of each trial, its lines as the client prints them (docs/reference/logs.md 2.2)."""
    query = """
        SELECT t.run_id, l.timestamp, l.level, l.log
        FROM task_logs l JOIN run_id_task_id t ON t.task_id = l.task_id ORDER BY l.id"""
    found: dict[str, list[str]] = {str(row["id"]): [] for row in await connection.fetch("SELECT id FROM runs")}
    for row in await connection.fetch(query):
        at = f"{row['timestamp'].isoformat(timespec='microseconds')}Z" if row["timestamp"] else "UNKNOWN TIME"
        level = f"{row['level']}: " if row["level"] else ""
        found[str(row["run_id"])].append(f"[{at}]          || {level}{row['log'].decode(errors='replace')}")
    return found
