"""Jobs, experiments with what was submitted, and trials."""

from __future__ import annotations

from typing import Final

from deploy.determined_import.kinds.copied import CopiedTable
from deploy.determined_import.kinds.rules import (
    EXPERIMENT_END,
    EXPERIMENT_STATE,
    TRIAL_END,
    TRIAL_IS_OPEN,
    TRIAL_STATE,
    json_object,
    json_object_or_null,
    members,
    run_is_there,
    utc,
)
from libs.db.tables.checkpoints import trial_sources
from libs.db.tables.experiments import experiments, model_definitions
from libs.db.tables.tasks import jobs
from libs.db.tables.trials import former_addresses, trials

_RESOURCES: Final = "e.config -> 'resources'"
_NOBODYS: Final = "00000000-0000-0000-0000-000000000000"

_LAST_ALLOCATION: Final = """(SELECT max(substring(a.allocation_id FROM '[.]([0-9]{1,9})$')::int)
    FROM run_id_task_id x JOIN allocations a ON a.task_id = x.task_id WHERE x.run_id = r.id)"""

JOBS: Final = CopiedTable(
    kind="jobs",
    target=jobs,
    rows="jobs j",
    joins="""LEFT JOIN experiments e ON e.job_id = j.job_id LEFT JOIN projects p ON p.id = e.project_id
        LEFT JOIN (
            SELECT DISTINCT ON (t.job_id) t.job_id, t.start_time, a.resource_pool, i.workspace_id
            FROM tasks t LEFT JOIN allocations a ON a.task_id = t.task_id
            LEFT JOIN allocation_workspace_info i ON i.allocation_id = a.allocation_id
            ORDER BY t.job_id, t.start_time, a.start_time
        ) t ON t.job_id = j.job_id""",
    key="j.job_id",
    key_type="text",
    columns={
        "job_id": "j.job_id",
        "job_type": "j.job_type::text",
        "owner_id": "coalesce(j.owner_id, e.owner_id, 1)",
        "workspace_id": "coalesce(p.workspace_id, t.workspace_id, 1)",
        "pool": f"coalesce(nullif({_RESOURCES} ->> 'resource_pool', ''), t.resource_pool, '')",
        "priority": f"{_RESOURCES} ->> 'priority'",
        "weight": f"coalesce({_RESOURCES} ->> 'weight', '1')",
        "max_slots": f"{_RESOURCES} ->> 'max_slots'",
        "submitted_at": f"coalesce(e.start_time, {utc('t.start_time')}, 'epoch')",
    },
    batch_rows=100_000,
)

EXPERIMENTS: Final = CopiedTable(
    kind="experiments",
    target=experiments,
    rows="experiments e",
    key="e.id",
    columns={
        "id": "e.id",
        "state": EXPERIMENT_STATE,
        "config": json_object("e.config"),
        "original_config": "coalesce(e.original_config, '')",
        "owner_id": "e.owner_id",
        "project_id": "e.project_id",
        "parent_id": "e.parent_id",
        "job_id": "e.job_id",
        "progress": "e.progress",
        "archived": "e.archived",
        "notes": "e.notes",
        "unmanaged": "e.unmanaged",
        "external_id": "e.external_experiment_id",
        "best_trial_id": "e.best_trial_id",
        "start_time": "e.start_time",
        "end_time": EXPERIMENT_END,
        "checkpoint_size": "e.checkpoint_size",
        "checkpoint_count": "e.checkpoint_count",
    },
    reset={"error": "NULL"},
    batch_rows=2_000,
)

MODEL_DEFINITIONS: Final = CopiedTable(
    kind="model definitions",
    target=model_definitions,
    rows="experiments e",
    key="e.id",
    columns={"experiment_id": "e.id", "tgz": "e.model_definition", "size_bytes": "octet_length(e.model_definition)"},
    # Up to a hundred megabytes each.
    batch_rows=20,
)

TRIALS: Final = CopiedTable(
    kind="trials",
    target=trials,
    rows="runs r",
    joins="""JOIN experiments e ON e.id = r.experiment_id LEFT JOIN trials_v2 v ON v.run_id = r.id
        LEFT JOIN runs_metadata m ON m.run_id = r.id
        LEFT JOIN checkpoints_v2 c ON c.id = r.warm_start_checkpoint_id""",
    key="r.id",
    columns={
        "id": "r.id",
        "experiment_id": "r.experiment_id",
        "project_id": "r.project_id",
        "local_id": "coalesce(r.local_id, 0)",
        "request_id": f"nullif(v.request_id, '{_NOBODYS}')",
        "external_id": "r.external_run_id",
        "seed": "coalesce(v.seed, 0)",
        "hparams": json_object("r.hparams"),
        "state": TRIAL_STATE,
        "restarts": "r.restarts",
        # Also the number of its present allocation here, so the next one must find a number that was never used.
        "run_id": f"greatest(r.restart_id, CASE WHEN {TRIAL_IS_OPEN} THEN {_LAST_ALLOCATION} END)",
        "start_time": "r.start_time",
        "end_time": TRIAL_END,
        "total_batches": "r.total_batches",
        # The api puts it into rows once the reports are there, too (services/api/metrics/rows/back_fill.py), and what a
        # later import changes goes back to its column: there is one way into rows, and the import takes no longer.
        "summary_metrics": members("r.summary_metrics", "object"),
        "searcher_metric_value": "r.searcher_metric_value",
        "searcher_metric_signed": "r.searcher_metric_value_signed",
        "best_validation_id": "r.best_validation_id",
        "latest_validation_id": "r.latest_validation_id",
        "warm_start_checkpoint_uuid": "c.uuid",
        "runner_state": "r.runner_state",
        "log_retention_days": "r.log_retention_days",
        "log_policy_matched": "r.log_policy_matched",
        "checkpoint_size": "r.checkpoint_size",
        "checkpoint_count": "r.checkpoint_count",
        "archived": "r.archived",
        "metadata": json_object_or_null("m.metadata"),
        "last_activity": "r.last_activity",
    },
    reset={"stopped_by_searcher": "false"},
    skipped={"the experiment is missing": f"NOT {run_is_there('r.id')}"},
)

TRIAL_SOURCES: Final = CopiedTable(
    kind="trial sources",
    target=trial_sources,
    rows="trial_source_infos s",
    key="s.trial_id",
    columns={
        "trial_id": "s.trial_id",
        "checkpoint_uuid": "s.checkpoint_uuid",
        "model_id": "s.model_id",
        "model_version": "s.model_version",
        "trial_source_info_type": "s.trial_source_info_type::text",
    },
    skipped={"the trial is missing": f"NOT {run_is_there('s.trial_id')}"},
)

FORMER_ADDRESSES: Final = CopiedTable(
    kind="former addresses of trials",
    target=former_addresses,
    rows="local_id_redirect l",
    key="l.local_id",
    columns={"key": "l.project_key", "local_id": "l.local_id", "trial_id": "l.run_id"},
    skipped={
        "the run is gone": f"NOT {run_is_there('l.run_id')}",
        "it is the present one": "EXISTS (SELECT FROM runs r JOIN projects p ON p.id = r.project_id"
        " WHERE r.id = l.run_id AND r.local_id = l.local_id AND p.key = l.project_key)",
        "it leads to another run as well": "EXISTS (SELECT FROM local_id_redirect o WHERE o.project_key = l.project_key"
        " AND o.local_id = l.local_id AND o.run_id < l.run_id)",
    },
    batch_rows=100_000,
)
