"""Rows of every kind, as an old server has left them: people with passwords, and work that had ended or had not.

The names below are what tests rely on; ids have gaps, as they have where things were deleted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import bcrypt

from libs.config import build_config, parse_experiment_config
from libs.searchers.search_start import start_search
from services.api.access.passwords import salted
from tests.builders import NO_FILES

CLUSTER_ID: Final = "5b1d5f0e-old-cluster"
PASSWORD: Final = "Correct-Horse-1"
NOON: Final = datetime(2025, 6, 1, 12, tzinfo=UTC)
CHECKPOINT: Final = "0a8a3c5e-7a51-4b1e-9a44-0d5a8a6d7c01"
LATEST: Final = "0a8a3c5e-7a51-4b1e-9a44-0d5a8a6d7c02"
ADA, TEAM = 7, 3
"""A user, and a workspace of hers."""
VISION: Final = 12
"""A project in it."""
FINISHED, UNFINISHED, ODD, DELETING = 101, 205, 206, 207
"""Experiments: one that is over; one whose search goes on; one whose search cannot; one that was being deleted."""
FINISHED_TRIAL: Final = 1001

_CONFIG: Final = """
name: {name}
entrypoint: python3 train.py
labels: [old]
searcher: {{name: random, metric: loss, max_trials: 4, max_concurrent_trials: 2}}
hyperparameters: {{lr: {{type: double, minval: 0.1, maxval: 0.9}}}}
reproducibility: {{experiment_seed: 7}}
checkpoint_storage: {{type: shared_fs, host_path: {storage}}}
"""


def config_of(name: str, storage: Path) -> tuple[str, dict[str, Any]]:
    """What was submitted, and the complete configuration."""
    text = _CONFIG.format(name=name, storage=storage)
    user = parse_experiment_config(text)
    return text, build_config(user, resource_pool="default", priority_default=42, seed=1, name=name)


async def insert(connection: Any, table: str, **columns: Any) -> None:
    """One row; dicts and lists become JSON."""
    values = [json.dumps(value) if isinstance(value, dict | list) else value for value in columns.values()]
    places = ", ".join(f"${number}" for number in range(1, len(values) + 1))
    await connection.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", *values)


async def populate(connection: Any, storage: Path) -> None:
    """Fill the tables of an old installation whose checkpoints are below ``storage``."""
    await insert(connection, "cluster_id", cluster_id=CLUSTER_ID)
    await _people(connection)
    await _workspaces(connection)
    await _finished(connection, storage)
    await _unfinished(connection, storage)
    await _registry(connection)


async def _people(connection: Any) -> None:
    hashed = bcrypt.hashpw(salted(PASSWORD).encode()[:72], bcrypt.gensalt(4)).decode()
    people = ((1, "admin", hashed, True), (2, "determined", None, False), (ADA, "ada", hashed, False))
    for ident, name, password, admin in people:
        row = {"id": ident, "username": name, "password_hash": password, "admin": admin, "active": True}
        await insert(connection, "users", **row)
        await insert(connection, "groups", id=ident, group_name=f"{ident}DeterminedPersonalGroup", user_id=ident)
        await insert(connection, "user_group_membership", user_id=ident, group_id=ident)
    await insert(connection, "users", id=9, username="gone", password_hash="", active=False, remote=True)
    await insert(connection, "agent_user_groups", user_id=ADA, user_="ada", uid=1007, group_="lab", gid=1001)
    await insert(connection, "groups", id=20, group_name="lab")
    await insert(connection, "user_group_membership", user_id=ADA, group_id=20)
    await insert(
        connection,
        "scim.users",
        id="7c0a5b4e-0000-4000-8000-000000000009",
        user_id=9,
        external_id="00u9",
        name={"givenName": "Gone"},
        emails=[{"value": "gone@example.com", "primary": True}],
    )
    await insert(connection, "oauth.clients", id="okta", secret="old-secret", domain="example.okta.com", name="Okta")
    await insert(connection, "user_web_settings", user_id=ADA, key="theme", storage_path="ui", value='"dark"')
    token = {"user_id": ADA, "expiry": datetime(2999, 1, 1), "token_type": "ACCESS_TOKEN", "description": "ci"}
    await insert(connection, "user_sessions", **token)
    await insert(connection, "roles", id=5, role_name="Editor")


async def _workspaces(connection: Any) -> None:
    await insert(connection, "workspaces", id=1, name="Uncategorized", user_id=1, immutable=True)
    await insert(connection, "workspaces", id=TEAM, name="Team", user_id=ADA, auto_created_namespace_name="team-3")
    await insert(connection, "workspace_pins", workspace_id=TEAM, user_id=ADA)
    binding = {"workspace_id": TEAM, "cluster_name": "default", "namespace": "team-3", "auto_create_namespace": True}
    await insert(connection, "workspace_namespace_bindings", **binding)
    await insert(connection, "rp_workspace_bindings", workspace_id=TEAM, pool_name="gpus", valid=True)
    await insert(connection, "rp_workspace_bindings", workspace_id=TEAM, pool_name="removed", valid=False)
    await insert(
        connection, "projects", id=1, name="Uncategorized", workspace_id=1, user_id=1, immutable=True, key="UNC"
    )
    notes = [{"name": "plan", "contents": "sharper edges"}]
    row = {"id": VISION, "name": "vision", "workspace_id": TEAM, "user_id": ADA, "key": "VIS", "notes": notes}
    await insert(connection, "projects", max_local_id=9, **row)
    await insert(
        connection, "local_id_redirect", run_id=FINISHED_TRIAL, project_id=VISION, project_key="OLD", local_id=1
    )
    await insert(connection, "templates", name="small", config={"resources": {"slots_per_trial": 1}}, workspace_id=TEAM)
    policy = {"workload_type": "EXPERIMENT", "last_updated_by": 1, "invariant_config": {"max_restarts": 1}}
    await insert(connection, "task_config_policies", workspace_id=TEAM, **policy)
    await insert(
        connection, "webhooks", id=4, url="https://hook/", webhook_type="SLACK", workspace_id=TEAM, name="hook"
    )
    condition = {"state": "COMPLETED"}
    await insert(
        connection, "webhook_triggers", webhook_id=4, trigger_type="EXPERIMENT_STATE_CHANGE", condition=condition
    )
    await insert(connection, "role_assignment_scopes", id=1)
    await insert(connection, "role_assignment_scopes", id=2, scope_workspace_id=TEAM)
    await insert(connection, "role_assignments", group_id=1, role_id=1, scope_id=1)
    await insert(connection, "role_assignments", group_id=20, role_id=5, scope_id=2)


async def _experiment(connection: Any, ident: int, *, state: str, storage: Path, **columns: Any) -> dict[str, Any]:
    """An experiment of Ada's with its job; returns its configuration."""
    original, config = config_of(f"old-{ident}", storage)
    await insert(connection, "jobs", job_id=f"job-{ident}", job_type="EXPERIMENT", owner_id=ADA)
    row = {"original_config": original, "config": config, "model_definition": NO_FILES, "notes": "kept", **columns}
    start = {"start_time": NOON, "owner_id": ADA, "project_id": VISION, "job_id": f"job-{ident}"}
    await insert(connection, "experiments", id=ident, state=state, **start, **row)
    return config


async def _trial(
    connection: Any, ident: int, experiment: int, *, state: str, request_id: str, hparams: Any, **columns: Any
) -> str:
    """A trial with its task and one allocation; returns the id of the task."""
    runs = {"experiment_id": experiment, "state": state, "project_id": VISION, "hparams": hparams, "start_time": NOON}
    await insert(connection, "runs", id=ident, restart_id=1, local_id=ident % 1000, **runs, **columns)
    await insert(connection, "trials_v2", not_trial_id=ident, run_id=ident, request_id=request_id, seed=17)
    task = f"{experiment}.{request_id}"
    began = NOON.replace(tzinfo=None)
    ended = began + timedelta(minutes=30) if columns.get("end_time") else None
    await insert(
        connection,
        "tasks",
        task_id=task,
        task_type="TRIAL",
        start_time=began,
        end_time=ended,
        job_id=f"job-{experiment}",
    )
    await insert(connection, "run_id_task_id", run_id=ident, task_id=task)
    row = {"task_id": task, "resource_pool": "default", "slots": 1, "start_time": began, "end_time": ended}
    running = "TERMINATED" if ended else "RUNNING"
    await insert(connection, "allocations", allocation_id=f"{task}.1", state=running, **row)
    return task


async def _validation(connection: Any, ident: int, trial: int, steps: int, loss: Any, **columns: Any) -> None:
    row = {"id": ident, "trial_id": trial, "total_batches": steps, "trial_run_id": 1}
    at = {"end_time": NOON + timedelta(minutes=steps)}
    await insert(connection, "raw_validations", metrics={"validation_metrics": {"loss": loss}}, **row, **at, **columns)


async def _finished(connection: Any, storage: Path) -> None:
    over = {"end_time": NOON + timedelta(hours=1)}
    best = {"best_trial_id": FINISHED_TRIAL, "checkpoint_size": 5, "checkpoint_count": 1, "progress": 1.0}
    await _experiment(connection, FINISHED, state="COMPLETED", storage=storage, **over, **best)
    number = {"type": "number", "count": 2, "sum": 0.75, "min": 0.25, "max": 0.5, "mean": 0.375, "last": 0.25}
    task = await _trial(
        connection,
        FINISHED_TRIAL,
        FINISHED,
        state="COMPLETED",
        request_id="3f1c1c0a-0000-4000-8000-000000000001",
        hparams={"lr": 0.3},
        total_batches=2,
        best_validation_id=22,
        latest_validation_id=22,
        searcher_metric_value=0.25,
        searcher_metric_value_signed=0.25,
        checkpoint_size=5,
        checkpoint_count=1,
        summary_metrics={"validation_metrics": {"loss": number}},
        **over,
    )
    await _validation(connection, 21, FINISHED_TRIAL, 1, 0.5)
    await _validation(connection, 22, FINISHED_TRIAL, 2, 0.25)
    await _validation(connection, 23, FINISHED_TRIAL, 2, "NaN", archived=True)
    for ident, steps in ((31, 1), (32, 2), (33, 2)):  # the last two are of one step, which an old server let through
        row = {"id": ident, "trial_id": FINISHED_TRIAL, "total_batches": steps, "end_time": NOON}
        await insert(connection, "raw_steps", metrics={"avg_metrics": {"loss": 1 / ident}}, **row)
    await insert(connection, "raw_steps", id=34, trial_id=FINISHED_TRIAL, total_batches=3)
    row = {"trial_id": FINISHED_TRIAL, "total_batches": 2, "end_time": NOON}
    await insert(
        connection, "generic_metrics", id=41, metric_group="fairness", metrics={"avg_metrics": {"f": 1}}, **row
    )
    await insert(connection, "system_metrics", id=51, metric_group="cpu", metrics={"a": {"util": 3}}, **row)
    await insert(connection, "runs_metadata", run_id=FINISHED_TRIAL, metadata={"owner": {"team": "vision"}})
    await insert(connection, "storage_backend_shared_fs", id=2, host_path=str(storage), propagation="rprivate")
    await insert(connection, "storage_backend", id=6, shared_fs_id=2)
    await _checkpoint(connection, CHECKPOINT, FINISHED_TRIAL, task, steps=2, storage=storage, storage_id=6)
    accelerator = {"container_id": "c", "node_name": "n", "accelerator_type": "H100", "accelerator_uuids": None}
    await insert(connection, "allocation_accelerators", id=1, allocation_id=f"{task}.1", **accelerator)
    lines: Sequence[tuple[int, bytes, str | None]] = (
        (1, b"hello\n", "INFO"),
        (2, b"\xff broken\n", None),
        (3, "gr\u00fc\u00df dich\n".encode(), "ERROR"),
    )
    for ident, log, level in lines:
        at = {"timestamp": NOON.replace(tzinfo=None) + timedelta(seconds=ident)}
        await insert(connection, "task_logs", id=ident, task_id=task, log=log, level=level, **at)
    await insert(connection, "task_logs", id=4, task_id="long-gone", log=b"nobody's\n")


async def _checkpoint(
    connection: Any, uuid: str, trial: int, task: str, *, steps: int, storage: Path, storage_id: int | None
) -> None:
    """A checkpoint whose one file is there."""
    (storage / uuid).mkdir(parents=True)
    (storage / uuid / "weights").write_bytes(b"12345")
    about = {"resources": {"weights": 5}, "metadata": {"steps_completed": steps}, "size": 5, "storage_id": storage_id}
    where = {"task_id": task, "allocation_id": f"{task}.1", "report_time": NOON, "state": "COMPLETED"}
    await insert(connection, "checkpoints_v2", uuid=uuid, **where, **about)
    await insert(connection, "run_checkpoints", run_id=trial, checkpoint_id=uuid)


async def _unfinished(connection: Any, storage: Path) -> None:
    """Of the search for four trials at most two at a time: one is over, one runs, and the third was about to come."""
    config = await _experiment(connection, UNFINISHED, state="ACTIVE", storage=storage, progress=0.5)
    first, second = start_search(config).creates
    over = {"end_time": NOON + timedelta(minutes=30)}
    await _trial(
        connection, 1011, UNFINISHED, state="COMPLETED", request_id=first.request_id, hparams=first.hparams, **over
    )
    running = {"request_id": second.request_id, "hparams": second.hparams, "total_batches": 5}
    task = await _trial(connection, 1012, UNFINISHED, state="RUNNING", **running)
    await _validation(connection, 61, 1011, 10, 0.4)
    await _checkpoint(connection, LATEST, 1012, task, steps=5, storage=storage, storage_id=None)
    await _experiment(connection, ODD, state="STOPPING_CANCELED", storage=storage)
    strange = "3f1c1c0a-0000-4000-8000-000000000009"
    await _trial(connection, 1021, ODD, state="STOPPING_CANCELED", request_id=strange, hparams={})
    await _experiment(connection, DELETING, state="DELETING", storage=storage, end_time=NOON)


async def add_experiment(connection: Any, experiment: int, trial: int, *, storage: Path) -> None:
    """One more experiment with its trial, as an old server adds it while it runs on."""
    over = {"end_time": NOON + timedelta(hours=2)}
    await _experiment(connection, experiment, state="COMPLETED", storage=storage, best_trial_id=trial, **over)
    request = f"3f1c1c0a-0000-4000-8000-{experiment:012}"
    await _trial(
        connection,
        trial,
        experiment,
        state="COMPLETED",
        request_id=request,
        hparams={"lr": 0.5},
        total_batches=1,
        **over,
    )
    await _validation(connection, 100_000 + trial, trial, 1, 0.75)


async def _registry(connection: Any) -> None:
    model = {"creation_time": NOON, "user_id": ADA, "workspace_id": TEAM, "metadata": {"a": 1}}
    await connection.execute("INSERT INTO jobs VALUES ('job-nb', 'NOTEBOOK', 2, '-1')")
    began = NOON.replace(tzinfo=None)
    await insert(connection, "tasks", task_id="nb", task_type="NOTEBOOK", start_time=began, job_id="job-nb")
    await insert(connection, "task_context_directory", task_id="nb", context_directory=b"tgz")
    for ident, parent, state in (("root", None, "PAUSED"), ("child", "root", "ACTIVE"), ("leaf", "child", "COMPLETED")):
        config = {"entrypoint": [ident]}
        above = {"parent_id": parent, "task_state": state, "config": config, "no_pause": parent is None}
        await insert(
            connection, "tasks", task_id=ident, task_type="GENERIC", start_time=began, job_id="job-nb", **above
        )
    await insert(connection, "models", id=8, name="mnist", **model)
    version = {"version": 1, "checkpoint_uuid": CHECKPOINT, "creation_time": NOON, "model_id": 8, "user_id": ADA}
    await insert(connection, "model_versions", id=15, name="v1", **version)
    await connection.execute("UPDATE models SET labels = ARRAY['a, b', 'c']")
    source = {"trial_id": FINISHED_TRIAL, "checkpoint_uuid": CHECKPOINT, "trial_source_info_type": "INFERENCE"}
    await insert(connection, "trial_source_infos", model_id=8, model_version=1, **source)
    usage = {"aggregation_type": "username", "aggregation_key": "ada", "seconds": 3600.0}
    await insert(connection, "resource_aggregates", date=NOON.date(), **usage)


async def add_lines(connection: Any, rows: int) -> None:
    """So many log lines, of every task alike."""
    await connection.execute(
        "INSERT INTO task_logs (id, task_id, allocation_id, timestamp, level, stdtype, log)"
        " SELECT 1000 + n, t.ids[1 + n % cardinality(t.ids)], 'a', now(), 'INFO', 'stdout',"
        " convert_to('step ' || n || ' loss ' || 1.0 / (n + 1) || E'\\n', 'UTF8')"
        " FROM (SELECT array_agg(task_id ORDER BY task_id) AS ids FROM tasks) t, generate_series(0, $1 - 1) AS n",
        rows,
    )


async def add_metrics(connection: Any, rows: int, *, trials: int = 4) -> None:
    """So many training reports of trials that exist in name only."""
    await connection.execute(
        "INSERT INTO raw_steps (trial_id, end_time, metrics, total_batches, trial_run_id, archived)"
        " SELECT 5000 + n % $2, now(), jsonb_build_object('avg_metrics', jsonb_build_object('loss', 1.0 / (n + 1),"
        " 'accuracy', n / 3.0, 'step', n)), n, 1, false FROM generate_series(0, $1 - 1) AS n",
        rows,
        trials,
    )
