"""What training code has reported: metrics and checkpoints, with the storages that these are in."""

from __future__ import annotations

from typing import Final

from deploy.determined_import.kinds.copied import CopiedTable
from deploy.determined_import.kinds.rules import json_object, members, run_is_there
from libs.db.tables.checkpoints import checkpoints, storage_backends
from libs.db.tables.metrics import metrics

METRICS: Final = CopiedTable(
    kind="metrics",
    target=metrics,
    # They are read by trial there, so the indexes are by trial; one of ids need not exist.
    rows="metrics m",
    key="m.trial_id",
    columns={
        "id": "m.id",
        "trial_id": "m.trial_id",
        "trial_run_id": "m.trial_run_id",
        "metric_group": "coalesce(m.metric_group, lower(m.partition_type))",
        "kind": "m.partition_type",
        "total_batches": "m.total_batches",
        "end_time": "coalesce(m.end_time, (SELECT coalesce(r.end_time, r.start_time) FROM runs r"
        " WHERE r.id = m.trial_id), 'epoch')",
        "metrics": "m.metrics",
        # One value per step counts, the last one; older versions of the old server have left others beside it.
        "archived": "m.archived OR (m.partition_type <> 'PROFILING' AND row_number() OVER (PARTITION BY m.trial_id,"
        " m.metric_group, m.total_batches, m.partition_type, m.archived ORDER BY m.id DESC) > 1)",
    },
    skipped={"without values": "jsonb_typeof(m.metrics) IS DISTINCT FROM 'object'"},
    batch_rows=100_000,
    follows=True,
)

_STORAGE: Final = """CASE
    WHEN b.s3_id IS NOT NULL THEN jsonb_build_object('type', 's3', 'bucket', s3.bucket, 'access_key', s3.access_key,
        'secret_key', s3.secret_key, 'endpoint_url', s3.endpoint_url, 'prefix', s3.prefix)
    WHEN b.gcs_id IS NOT NULL THEN jsonb_build_object('type', 'gcs', 'bucket', gcs.bucket, 'prefix', gcs.prefix)
    WHEN b.azure_id IS NOT NULL THEN jsonb_strip_nulls(jsonb_build_object('type', 'azure', 'container', az.container,
        'connection_string', az.connection_string, 'account_url', az.account_url, 'credential', az.credential))
    WHEN b.directory_id IS NOT NULL THEN jsonb_build_object('type', 'directory', 'container_path', d.container_path)
    ELSE jsonb_strip_nulls(jsonb_build_object('container_path', fs.container_path, 'checkpoint_path',
        fs.checkpoint_path, 'tensorboard_path', fs.tensorboard_path)) || jsonb_build_object('type', 'shared_fs',
        'host_path', fs.host_path, 'storage_path', fs.storage_path, 'propagation', fs.propagation) END"""

STORAGES: Final = CopiedTable(
    kind="checkpoint storages",
    target=storage_backends,
    rows="storage_backend b",
    joins="""LEFT JOIN storage_backend_s3 s3 ON s3.id = b.s3_id LEFT JOIN storage_backend_gcs gcs ON gcs.id = b.gcs_id
        LEFT JOIN storage_backend_azure az ON az.id = b.azure_id
        LEFT JOIN storage_backend_directory d ON d.id = b.directory_id
        LEFT JOIN storage_backend_shared_fs fs ON fs.id = b.shared_fs_id""",
    key="b.id",
    columns={
        "id": "b.id",
        "config": _STORAGE,
        # Of no configuration: what is registered later gets a number of its own, which does no harm.
        "config_hash": "sha256(convert_to('imported ' || b.id, 'UTF8'))",
    },
)

_STEPS: Final = "c.metadata -> 'steps_completed'"

CHECKPOINTS: Final = CopiedTable(
    kind="checkpoints",
    target=checkpoints,
    rows="checkpoints_v2 c",
    joins="LEFT JOIN run_checkpoints x ON x.checkpoint_id = c.uuid LEFT JOIN runs r"
    f" ON r.id = x.run_id AND {run_is_there('x.run_id')}",
    key="c.uuid",
    key_type="uuid",
    columns={
        "uuid": "c.uuid",
        "task_id": "coalesce(c.task_id, '')",
        "allocation_id": "c.allocation_id",
        "trial_id": "r.id",
        "experiment_id": "r.experiment_id",
        "report_time": "c.report_time",
        "state": "c.state::text",
        "resources": members("c.resources", "number"),
        "metadata": json_object("c.metadata"),
        "steps_completed": f"CASE WHEN jsonb_typeof({_STEPS}) = 'number' AND abs(({_STEPS})::numeric) < 2^62"
        f" THEN trunc(({_STEPS})::numeric) END",
        "size_bytes": "c.size",
        "storage_id": "c.storage_id",
    },
)
