"""The first schema, with its built-in users, workspace and project."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

METRIC_PARTITIONS = 8

SEED = """
INSERT INTO cluster (id, cluster_id, proxy_secret, webhook_signing_key) VALUES
  (1, gen_random_uuid()::text, sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())),
   replace(gen_random_uuid()::text, '-', ''));
INSERT INTO users (username, admin) VALUES ('admin', true), ('determined', false);
INSERT INTO groups (name, user_id)
  VALUES ('adminDeterminedPersonalGroup', 1), ('determinedDeterminedPersonalGroup', 2);
INSERT INTO role_assignments (group_id, role_id) VALUES (1, 1);
INSERT INTO workspaces (name, owner_id, immutable) VALUES ('Uncategorized', 1, true);
INSERT INTO projects (workspace_id, name, key, owner_id, immutable) VALUES (1, 'Uncategorized', 'UNCAT', 1, true);
INSERT INTO project_keys (key, project_id) VALUES ('UNCAT', 1);
"""

# Whoever relays the outbox hears of a commit at once.
NOTIFY = """
CREATE FUNCTION notify_outbox() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_notify('outbox', ''); RETURN NULL; END $$;
CREATE TRIGGER outbox_news AFTER INSERT ON outbox FOR EACH STATEMENT EXECUTE FUNCTION notify_outbox();
"""

# Reports of usage outlive what they are about.
RECORD_USAGE = """
CREATE FUNCTION record_usage() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
  INSERT INTO allocation_usage (allocation_id, task_id, task_type, owner_id, workspace_name, experiment_id, labels,
                                pool, slots, requested_at, start_time, end_time)
  SELECT NEW.allocation_id, NEW.task_id, t.task_type, t.owner_id, coalesce(w.name, ''), t.experiment_id,
         CASE WHEN jsonb_typeof(e.config -> 'labels') = 'array' THEN e.config -> 'labels' ELSE '[]' END,
         NEW.pool, NEW.slots, NEW.requested_at, NEW.start_time, NEW.end_time
  FROM tasks t
  LEFT JOIN workspaces w ON w.id = t.workspace_id
  LEFT JOIN experiments e ON e.id = t.experiment_id
  WHERE t.task_id = NEW.task_id
  ON CONFLICT (allocation_id) DO UPDATE SET
    pool = excluded.pool, slots = excluded.slots, start_time = excluded.start_time, end_time = excluded.end_time;
  RETURN NULL;
END
$$
"""
RECORD_USAGE_OF_ALL = """
CREATE TRIGGER allocation_usage_of_all AFTER INSERT OR UPDATE OF pool, slots, start_time, end_time ON allocations
FOR EACH ROW EXECUTE FUNCTION record_usage()
"""

# Whatever subscribers to updates are told of gets a number with every change. It is given when the transaction commits,
# to one transaction at a time, so that nobody who has seen a number can still miss a lower one.
NUMBERED = {
    "projects": (
        "projects",
        "INSERT OR UPDATE OF name, description, archived, notes, workspace_id, owner_id, immutable, state, key",
    ),
    # An archived workspace archives its projects.
    "workspaces": ("projects", "UPDATE OF archived"),
    "models": (
        "models",
        "INSERT OR UPDATE OF name, description, archived, notes, workspace_id, owner_id, metadata, labels, updated_at",
    ),
    "model_versions": (
        "model_versions",
        "INSERT OR UPDATE OF name, version, checkpoint_uuid, metadata, owner_id, comment, labels, notes, updated_at",
    ),
}
NUMBER_CHANGE = """
CREATE FUNCTION number_change() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
  PERFORM pg_advisory_xact_lock(1582305396);
  EXECUTE format('UPDATE %I SET seq = nextval(%L) WHERE id = $1', TG_TABLE_NAME, TG_ARGV[0]) USING NEW.id;
  RETURN NULL;
END
$$
"""


def upgrade() -> None:
    _create_tables()
    _create_imported_tables()
    _create_provisioned_tables()
    op.execute("CREATE SEQUENCE task_line_seq")
    for part in range(METRIC_PARTITIONS):
        op.execute(
            f"CREATE TABLE metrics_p{part} PARTITION OF metrics"
            f" FOR VALUES WITH (MODULUS {METRIC_PARTITIONS}, REMAINDER {part})"
        )
    # Partitions by day are made by the logs service; this one takes what falls outside of them.
    op.execute("CREATE TABLE task_logs_default PARTITION OF task_logs DEFAULT")
    for script in (SEED, NOTIFY):
        for statement in _statements(script):
            op.execute(statement)
    op.execute(RECORD_USAGE)
    op.execute(RECORD_USAGE_OF_ALL)
    _number_changes()


def _number_changes() -> None:
    op.execute(NUMBER_CHANGE)
    for kind in ("projects", "models", "model_versions"):
        op.execute(f"CREATE SEQUENCE {kind}_change_seq")
    for table, (kind, change) in NUMBERED.items():
        op.execute(
            f"CREATE CONSTRAINT TRIGGER {table}_numbered AFTER {change} ON {table} DEFERRABLE INITIALLY DEFERRED"
            f" FOR EACH ROW EXECUTE FUNCTION number_change('{kind}_change_seq')"
        )


def _statements(script: str) -> list[str]:
    return [part.strip() for part in script.split(";\n") if part.strip()]


def _create_tables() -> None:  # noqa: PLR0915
    op.create_table(
        "checkpoints",
        sa.Column("uuid", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("allocation_id", sa.Text(), nullable=True),
        sa.Column("trial_id", sa.BigInteger(), nullable=True),
        sa.Column("experiment_id", sa.BigInteger(), nullable=True),
        sa.Column("report_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column(
            "resources",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "metadata",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("steps_completed", sa.BigInteger(), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("storage_id", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("uuid", name=op.f("pk_checkpoints")),
    )
    op.create_index(op.f("ix_checkpoints_experiment_id"), "checkpoints", ["experiment_id"], unique=False)
    op.create_index(op.f("ix_checkpoints_task_id"), "checkpoints", ["task_id"], unique=False)
    op.create_index(op.f("ix_checkpoints_trial_id"), "checkpoints", ["trial_id"], unique=False)
    op.create_table(
        "cluster",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("cluster_id", sa.Text(), nullable=False),
        sa.Column("proxy_secret", sa.LargeBinary(), nullable=False),
        sa.Column("webhook_signing_key", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("initialised_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cluster")),
    )
    op.create_table(
        "log_streams",
        sa.Column("stream_key", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("allocation_id", sa.Text(), nullable=True),
        sa.Column("contiguous", sa.Boolean(), nullable=False),
        sa.Column("next_seq", sa.BigInteger(), nullable=False),
        sa.Column("missing", sa.ARRAY(sa.BigInteger()), nullable=False),
        sa.Column("end_seq", sa.BigInteger(), nullable=True),
        sa.Column("seen_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("waits_in", sa.SmallInteger(), nullable=True),
        sa.Column("waits_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("parked_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("sealed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("written_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("stream_key", name=op.f("pk_log_streams")),
    )
    op.create_index(op.f("ix_log_streams_task_id"), "log_streams", ["task_id"], unique=False)
    op.create_index(
        "ix_log_streams_waiting",
        "log_streams",
        ["waits_in"],
        unique=False,
        postgresql_where=sa.text("waits_in IS NOT NULL"),
    )
    op.create_index("ix_log_streams_written_at", "log_streams", ["written_at"], unique=False)
    op.create_table(
        "log_parked",
        sa.Column("stream_key", sa.Text(), nullable=False),
        sa.Column("first_seq", sa.BigInteger(), nullable=False),
        sa.Column("end_seq", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("batch", sa.LargeBinary(), nullable=False),
        sa.Column("parked_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_key"],
            ["log_streams.stream_key"],
            name=op.f("fk_log_parked_stream_key_log_streams"),
            ondelete="CASCADE",
            deferrable=True,
            initially="DEFERRED",
        ),
        sa.PrimaryKeyConstraint("stream_key", "first_seq", "end_seq", name=op.f("pk_log_parked")),
    )
    # Log text as it is: compressing half a megabyte takes longer than writing it.
    op.execute("ALTER TABLE log_parked ALTER COLUMN batch SET STORAGE EXTERNAL")
    op.create_table(
        "log_writers",
        sa.Column("writer", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("writer", name=op.f("pk_log_writers")),
    )
    op.create_table(
        "metrics",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("trial_id", sa.BigInteger(), nullable=False),
        sa.Column("trial_run_id", sa.Integer(), nullable=False),
        sa.Column("metric_group", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("total_batches", sa.Integer(), nullable=True),
        sa.Column("end_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("metrics", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("archived", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.PrimaryKeyConstraint("id", "trial_id", name=op.f("pk_metrics")),
        postgresql_partition_by="HASH (trial_id)",
    )
    op.create_index(
        "ix_metrics_profiling",
        "metrics",
        ["trial_id", "metric_group", "end_time"],
        unique=False,
        postgresql_where=sa.text("kind = 'PROFILING'"),
    )
    op.create_index(
        "uq_metrics_step",
        "metrics",
        ["trial_id", "metric_group", "total_batches"],
        unique=True,
        postgresql_where=sa.text("NOT archived AND kind <> 'PROFILING'"),
    )
    op.create_table(
        "auto_created_namespaces",
        sa.Column("cluster_name", sa.Text(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("claimed_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("quota_slots", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("cluster_name", "namespace", name=op.f("pk_auto_created_namespaces")),
    )
    op.create_index(
        op.f("ix_auto_created_namespaces_workspace_id"), "auto_created_namespaces", ["workspace_id"], unique=False
    )
    op.create_table(
        "node_overrides",
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("draining", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("node", name=op.f("pk_node_overrides")),
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column(
            "headers",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_table(
        "storage_backends",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("config", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("config_hash", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_storage_backends")),
        sa.UniqueConstraint("config_hash", name=op.f("uq_storage_backends_config_hash")),
    )
    op.create_table(
        "task_logs",
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("ingested_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("timestamp", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("log", sa.LargeBinary(), nullable=False),
        sa.Column("searchable", sa.Text(), nullable=True),
        sa.Column("level", sa.Text(), nullable=True),
        sa.Column("rank_id", sa.Integer(), nullable=True),
        sa.Column("stdtype", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("container_id", sa.Text(), nullable=True),
        sa.Column("allocation_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("task_id", "id", "ingested_at", name=op.f("pk_task_logs")),
        postgresql_partition_by="RANGE (ingested_at)",
    )
    op.create_table(
        "trial_sources",
        sa.Column("trial_id", sa.BigInteger(), nullable=False),
        sa.Column("checkpoint_uuid", sa.Text(), nullable=False),
        sa.Column("model_id", sa.BigInteger(), nullable=True),
        sa.Column("model_version", sa.Integer(), nullable=True),
        sa.Column("trial_source_info_type", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("trial_id", "checkpoint_uuid", name=op.f("pk_trial_sources")),
    )
    op.create_index(
        "ix_trial_sources_model_id_model_version", "trial_sources", ["model_id", "model_version"], unique=False
    )
    op.create_table(
        "users",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=True),
        sa.Column("display_name", sa.Text(), server_default="", nullable=False),
        sa.Column("admin", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("active", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("remote", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("modified_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("last_auth_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("agent_uid", sa.Integer(), nullable=True),
        sa.Column("agent_user", sa.Text(), nullable=True),
        sa.Column("agent_gid", sa.Integer(), nullable=True),
        sa.Column("agent_group", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("username", name=op.f("uq_users_username")),
    )
    op.create_table(
        "allocation_sessions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("allocation_id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["users.id"], name=op.f("fk_allocation_sessions_owner_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_allocation_sessions")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_allocation_sessions_token_hash")),
    )
    op.create_index(
        op.f("ix_allocation_sessions_allocation_id"), "allocation_sessions", ["allocation_id"], unique=False
    )
    op.create_table(
        "jobs",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("job_type", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("workspace_id", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=True),
        sa.Column("weight", sa.Float(), server_default="1", nullable=False),
        sa.Column("max_slots", sa.Integer(), nullable=True),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("traceparent", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_jobs_owner_id")),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_jobs")),
    )
    op.create_table(
        "tasks",
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("task_type", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("experiment_id", sa.BigInteger(), nullable=True),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("workspace_id", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("start_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("end_time", sa.DateTime(timezone=True), nullable=True),
        sa.Column("spec", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column(
            "cancel_retries",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column("context_tgz", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_tasks_owner_id")),
        sa.PrimaryKeyConstraint("task_id", name=op.f("pk_tasks")),
    )
    op.create_index(op.f("ix_tasks_experiment_id"), "tasks", ["experiment_id"], unique=False)
    op.create_index(op.f("ix_tasks_job_id"), "tasks", ["job_id"], unique=False)
    op.create_table(
        "generic_tasks",
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("root_id", sa.Text(), nullable=False),
        sa.Column("parent_id", sa.Text(), nullable=True),
        sa.Column("forked_from", sa.Text(), nullable=True),
        sa.Column("no_pause", sa.Boolean(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("config", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(
            ["task_id"], ["tasks.task_id"], name=op.f("fk_generic_tasks_task_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("task_id", name=op.f("pk_generic_tasks")),
    )
    op.create_index(op.f("ix_generic_tasks_root_id"), "generic_tasks", ["root_id"], unique=False)
    op.create_index(op.f("ix_generic_tasks_state"), "generic_tasks", ["state"], unique=False)
    op.create_table(
        "user_sessions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("token_type", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("allocation_id", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_user_sessions_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user_sessions")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_user_sessions_token_hash")),
    )
    op.create_index(op.f("ix_user_sessions_allocation_id"), "user_sessions", ["allocation_id"], unique=False)
    op.create_index(op.f("ix_user_sessions_user_id"), "user_sessions", ["user_id"], unique=False)
    op.create_table(
        "user_settings",
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("storage_path", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_user_settings_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "storage_path", "key", name=op.f("pk_user_settings")),
    )
    op.create_table(
        "cluster_message",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("start_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("end_time", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("created_by", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["created_by"], ["users.id"], name=op.f("fk_cluster_message_created_by")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cluster_message")),
    )
    op.create_table(
        "workspaces",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("archived", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("immutable", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("state", sa.Text(), server_default="", nullable=False),
        sa.Column("error_message", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("agent_uid", sa.Integer(), nullable=True),
        sa.Column("agent_user", sa.Text(), nullable=True),
        sa.Column("agent_gid", sa.Integer(), nullable=True),
        sa.Column("agent_group", sa.Text(), nullable=True),
        sa.Column("checkpoint_storage", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("default_compute_pool", sa.Text(), server_default="", nullable=False),
        sa.Column("default_aux_pool", sa.Text(), server_default="", nullable=False),
        sa.Column("auto_created_namespace", sa.Text(), nullable=True),
        sa.Column("seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_workspaces_owner_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspaces")),
    )
    op.create_index("uq_workspaces_name_lower", "workspaces", [sa.literal_column("lower(name)")], unique=True)
    op.create_table(
        "templates",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column(
            "config",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("workspace_id", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_templates_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_templates")),
    )
    op.create_index(op.f("ix_templates_workspace_id"), "templates", ["workspace_id"], unique=False)
    op.create_table(
        "allocations",
        sa.Column("allocation_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("num_pods", sa.Integer(), server_default="1", nullable=False),
        sa.Column("preemptible", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("preemption_timeout_s", sa.Integer(), server_default="3600", nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("assigned_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("start_time", sa.DateTime(timezone=True), nullable=True),
        sa.Column("end_time", sa.DateTime(timezone=True), nullable=True),
        sa.Column("released_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("is_ready", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column(
            "pods",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "places",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column("wait_reason", sa.Text(), server_default="", nullable=False),
        sa.Column(
            "ports",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("proxy_address", sa.Text(), nullable=True),
        sa.Column(
            "blocked_nodes",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column("namespace", sa.Text(), server_default="", nullable=False),
        sa.Column("priority", sa.Integer(), nullable=True),
        sa.Column("preempted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("preempt_deadline", sa.DateTime(timezone=True), nullable=True),
        sa.Column("preempt_reason", sa.Text(), nullable=True),
        sa.Column("preempt_acked", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("killed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("kill_reason", sa.Text(), nullable=True),
        sa.Column("killed_while_running", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("exit_reason", sa.Text(), nullable=True),
        sa.Column("exit_error", sa.Text(), nullable=True),
        sa.Column("exit_kind", sa.Text(), server_default="", nullable=False),
        sa.Column("stopped_early", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("status_code", sa.Integer(), nullable=True),
        sa.Column("exit_processed", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("traceparent", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["task_id"], ["tasks.task_id"], name=op.f("fk_allocations_task_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("allocation_id", name=op.f("pk_allocations")),
    )
    op.create_index(op.f("ix_allocations_job_id"), "allocations", ["job_id"], unique=False)
    op.create_index(
        "ix_allocations_live", "allocations", ["pool"], unique=False, postgresql_where=sa.text("released_at IS NULL")
    )
    op.create_index(op.f("ix_allocations_task_id"), "allocations", ["task_id"], unique=False)
    op.create_index(
        "ix_allocations_exit_unprocessed",
        "allocations",
        ["task_id"],
        unique=False,
        postgresql_where=sa.text("NOT exit_processed"),
    )
    op.create_table(
        "allocation_usage",
        sa.Column("allocation_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("task_type", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("workspace_name", sa.Text(), nullable=False),
        sa.Column("experiment_id", sa.BigInteger(), nullable=True),
        sa.Column(
            "labels",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("start_time", sa.DateTime(timezone=True), nullable=True),
        sa.Column("end_time", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("allocation_id", name=op.f("pk_allocation_usage")),
    )
    op.create_index("ix_allocation_usage_start_time", "allocation_usage", ["start_time"], unique=False)
    op.create_index("ix_allocation_usage_end_time", "allocation_usage", ["end_time"], unique=False)
    op.create_table(
        "projects",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("archived", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("immutable", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("state", sa.Text(), server_default="", nullable=False),
        sa.Column("error_message", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column(
            "notes",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column("max_local_id", sa.Integer(), server_default="0", nullable=False),
        sa.Column("seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_projects_owner_id")),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.id"], name=op.f("fk_projects_workspace_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint("key", name=op.f("uq_projects_key")),
        sa.UniqueConstraint("workspace_id", "name", name=op.f("uq_projects_workspace_id_name")),
    )
    op.create_index(op.f("ix_projects_seq"), "projects", ["seq"], unique=False)
    op.create_table(
        "user_activity",
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_user_activity_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_user_activity_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "project_id", name=op.f("pk_user_activity")),
    )
    op.create_index(op.f("ix_user_activity_project_id"), "user_activity", ["project_id"], unique=False)
    op.create_table(
        "project_keys",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_project_keys_project_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_project_keys")),
    )
    op.create_index(op.f("ix_project_keys_project_id"), "project_keys", ["project_id"], unique=False)
    op.create_table(
        "workspace_namespace_bindings",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("cluster_name", sa.Text(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("auto_created", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspaces.id"],
            name=op.f("fk_workspace_namespace_bindings_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workspace_id", "cluster_name", name=op.f("pk_workspace_namespace_bindings")),
    )
    op.create_table(
        "workspace_pins",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("pinned_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_workspace_pins_user_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_workspace_pins_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("workspace_id", "user_id", name=op.f("pk_workspace_pins")),
    )
    op.create_table(
        "accelerator_data",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("allocation_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("node_name", sa.Text(), server_default="", nullable=False),
        sa.Column("container_id", sa.Text(), server_default="", nullable=False),
        sa.Column("accelerator_type", sa.Text(), server_default="", nullable=False),
        sa.Column(
            "accelerator_uuids",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["allocation_id"],
            ["allocations.allocation_id"],
            name=op.f("fk_accelerator_data_allocation_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_accelerator_data")),
    )
    op.create_index(op.f("ix_accelerator_data_allocation_id"), "accelerator_data", ["allocation_id"], unique=False)
    op.create_index(op.f("ix_accelerator_data_task_id"), "accelerator_data", ["task_id"], unique=False)
    op.create_table(
        "interactive_tasks",
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("config", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("idle_timeout_s", sa.Float(), nullable=True),
        sa.Column("private_key", sa.Text(), nullable=True),
        sa.Column("public_key", sa.Text(), nullable=True),
        sa.Column(
            "experiment_ids",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "trial_ids",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column("last_active_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["task_id"], ["tasks.task_id"], name=op.f("fk_interactive_tasks_task_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("task_id", name=op.f("pk_interactive_tasks")),
    )
    op.create_table(
        "experiments",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("config", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("original_config", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("parent_id", sa.BigInteger(), nullable=True),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("progress", sa.Float(), nullable=True),
        sa.Column("archived", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("notes", sa.Text(), server_default="", nullable=False),
        sa.Column("unmanaged", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("best_trial_id", sa.BigInteger(), nullable=True),
        sa.Column("start_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("end_time", sa.DateTime(timezone=True), nullable=True),
        sa.Column("checkpoint_size", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("checkpoint_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("deletion_tasks", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("ssh_private_key", sa.Text(), server_default="", nullable=False),
        sa.Column("ssh_public_key", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_experiments_owner_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_experiments_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_experiments")),
        sa.UniqueConstraint("external_id", name=op.f("uq_experiments_external_id")),
        sa.UniqueConstraint("job_id", name=op.f("uq_experiments_job_id")),
    )
    op.create_index(
        "ix_experiments_deleting", "experiments", ["id"], unique=False, postgresql_where=sa.text("state = 'DELETING'")
    )
    op.create_index(op.f("ix_experiments_project_id"), "experiments", ["project_id"], unique=False)
    op.create_index(
        "ix_experiments_unfinished", "experiments", ["id"], unique=False, postgresql_where=sa.text("end_time IS NULL")
    )
    op.create_table(
        "gather_members",
        sa.Column("allocation_id", sa.Text(), nullable=False),
        sa.Column("request_uuid", sa.Text(), nullable=False),
        sa.Column("num_peers", sa.Integer(), nullable=False),
        sa.Column("data", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("gathered", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("joined_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("noted_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["allocation_id"],
            ["allocations.allocation_id"],
            name=op.f("fk_gather_members_allocation_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("allocation_id", "request_uuid", name=op.f("pk_gather_members")),
    )
    op.create_table(
        "experiment_storages",
        sa.Column("experiment_id", sa.BigInteger(), nullable=False),
        sa.Column("storage_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment_id"],
            ["experiments.id"],
            name=op.f("fk_experiment_storages_experiment_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["storage_id"], ["storage_backends.id"], name=op.f("fk_experiment_storages_storage_id")
        ),
        sa.PrimaryKeyConstraint("experiment_id", "storage_id", name=op.f("pk_experiment_storages")),
    )
    op.create_table(
        "checkpoint_gc_requests",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("experiment_id", sa.BigInteger(), nullable=False),
        sa.Column("storage_id", sa.BigInteger(), nullable=True),
        sa.Column(
            "uuids",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "globs",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column("delete_tensorboards", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment_id"],
            ["experiments.id"],
            name=op.f("fk_checkpoint_gc_requests_experiment_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_checkpoint_gc_requests")),
    )
    op.create_index(
        op.f("ix_checkpoint_gc_requests_experiment_id"), "checkpoint_gc_requests", ["experiment_id"], unique=False
    )
    op.create_table(
        "model_definitions",
        sa.Column("experiment_id", sa.BigInteger(), nullable=False),
        sa.Column("tgz", sa.LargeBinary(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment_id"], ["experiments.id"], name=op.f("fk_model_definitions_experiment_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("experiment_id", name=op.f("pk_model_definitions")),
    )
    op.create_table(
        "searcher_events",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("experiment_id", sa.BigInteger(), nullable=False),
        sa.Column("trial_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column(
            "payload",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment_id"], ["experiments.id"], name=op.f("fk_searcher_events_experiment_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_searcher_events")),
    )
    op.create_index(op.f("ix_searcher_events_experiment_id"), "searcher_events", ["experiment_id"], unique=False)
    op.create_table(
        "searcher_snapshots",
        sa.Column("experiment_id", sa.BigInteger(), nullable=False),
        sa.Column("snapshot", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment_id"], ["experiments.id"], name=op.f("fk_searcher_snapshots_experiment_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("experiment_id", name=op.f("pk_searcher_snapshots")),
    )
    op.create_table(
        "trials",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("experiment_id", sa.BigInteger(), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("local_id", sa.Integer(), server_default="0", nullable=False),
        sa.Column("request_id", sa.Text(), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("seed", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column(
            "hparams",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("restarts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("run_id", sa.Integer(), server_default="0", nullable=False),
        sa.Column("start_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("end_time", sa.DateTime(timezone=True), nullable=True),
        sa.Column("total_batches", sa.Integer(), server_default="0", nullable=False),
        sa.Column(
            "summary_metrics",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("searcher_metric_value", sa.Float(), nullable=True),
        sa.Column("searcher_metric_signed", sa.Float(), nullable=True),
        sa.Column("best_validation_id", sa.BigInteger(), nullable=True),
        sa.Column("latest_validation_id", sa.BigInteger(), nullable=True),
        sa.Column("warm_start_checkpoint_uuid", sa.Text(), nullable=True),
        sa.Column("runner_state", sa.Text(), server_default="", nullable=False),
        sa.Column("log_retention_days", sa.Integer(), nullable=True),
        sa.Column("log_policy_matched", sa.Text(), nullable=True),
        sa.Column("checkpoint_size", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("checkpoint_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("archived", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("metadata", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("last_activity", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stopped_by_searcher", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("early_exit_reason", sa.Text(), nullable=True),
        sa.Column("early_exit_deadline", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "blocked_nodes",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column("transient_ends", sa.Integer(), server_default="0", nullable=False),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["experiment_id"], ["experiments.id"], name=op.f("fk_trials_experiment_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_trials_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trials")),
        sa.UniqueConstraint("experiment_id", "external_id", name=op.f("uq_trials_experiment_id_external_id")),
        sa.UniqueConstraint("experiment_id", "request_id", name=op.f("uq_trials_experiment_id_request_id")),
    )
    op.create_index(
        "ix_trials_of_project",
        "trials",
        ["project_id", "experiment_id"],
        unique=False,
        postgresql_include=["state", "archived"],
    )
    op.create_index("ix_trials_searcher_metric", "trials", ["project_id", "searcher_metric_value", "id"], unique=False)
    op.create_index(
        "ix_trials_searcher_metric_desc",
        "trials",
        ["project_id", sa.literal_column("searcher_metric_value DESC NULLS LAST"), "id"],
        unique=False,
    )
    op.create_index(
        "ix_trials_early_exit",
        "trials",
        ["early_exit_deadline"],
        unique=False,
        postgresql_where=sa.text("early_exit_deadline IS NOT NULL"),
    )
    op.create_index(
        "ix_trials_unfinished", "trials", ["experiment_id"], unique=False, postgresql_where=sa.text("end_time IS NULL")
    )
    op.create_table(
        "trial_tasks",
        sa.Column("trial_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.id"], name=op.f("fk_trial_tasks_trial_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("trial_id", "position", name=op.f("pk_trial_tasks")),
        sa.UniqueConstraint("task_id", name=op.f("uq_trial_tasks_task_id")),
    )
    op.create_table(
        "former_addresses",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("local_id", sa.Integer(), nullable=False),
        sa.Column("trial_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trial_id"], ["trials.id"], name=op.f("fk_former_addresses_trial_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("key", "local_id", name=op.f("pk_former_addresses")),
    )
    op.create_index(op.f("ix_former_addresses_trial_id"), "former_addresses", ["trial_id"], unique=False)
    op.create_table(
        "deleted_trials",
        sa.Column("trial_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("task_ids", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("trial_id", name=op.f("pk_deleted_trials")),
    )


def _create_imported_tables() -> None:
    """What only an import fills, until there are endpoints for it."""
    op.create_table(
        "groups",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_groups_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_groups")),
        sa.UniqueConstraint("name", name=op.f("uq_groups_name")),
        sa.UniqueConstraint("user_id", name=op.f("uq_groups_user_id")),
    )
    op.create_table(
        "group_members",
        sa.Column("group_id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["groups.id"], name=op.f("fk_group_members_group_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_group_members_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("group_id", "user_id", name=op.f("pk_group_members")),
    )
    op.create_index(op.f("ix_group_members_user_id"), "group_members", ["user_id"], unique=False)
    op.create_table(
        "role_assignments",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("group_id", sa.BigInteger(), nullable=False),
        sa.Column("role_id", sa.Integer(), nullable=False),
        sa.Column("workspace_id", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["group_id"], ["groups.id"], name=op.f("fk_role_assignments_group_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_role_assignments_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_role_assignments")),
    )
    op.create_index(op.f("ix_role_assignments_workspace_id"), "role_assignments", ["workspace_id"], unique=False)
    op.create_index(
        "uq_role_assignments",
        "role_assignments",
        ["group_id", "role_id", sa.literal_column("coalesce(workspace_id, 0)")],
        unique=True,
    )
    op.create_table(
        "models",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("notes", sa.Text(), server_default="", nullable=False),
        sa.Column(
            "metadata",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "labels",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("archived", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_models_owner_id")),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.id"], name=op.f("fk_models_workspace_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_models")),
        sa.UniqueConstraint("name", name=op.f("uq_models_name")),
    )
    op.create_index(op.f("ix_models_seq"), "models", ["seq"], unique=False)
    op.create_index(op.f("ix_models_workspace_id"), "models", ["workspace_id"], unique=False)
    op.create_table(
        "model_versions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("model_id", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("checkpoint_uuid", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("comment", sa.Text(), server_default="", nullable=False),
        sa.Column("notes", sa.Text(), server_default="", nullable=False),
        sa.Column(
            "metadata",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "labels",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column("owner_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name=op.f("fk_model_versions_model_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_model_versions_owner_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_versions")),
        sa.UniqueConstraint("model_id", "version", name=op.f("uq_model_versions_model_id_version")),
    )
    op.create_index(op.f("ix_model_versions_checkpoint_uuid"), "model_versions", ["checkpoint_uuid"], unique=False)
    op.create_index(op.f("ix_model_versions_seq"), "model_versions", ["seq"], unique=False)
    op.create_table(
        "webhooks",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("webhook_type", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), server_default="WORKSPACE", nullable=False),
        sa.Column("workspace_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_webhooks_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    op.create_index(op.f("ix_webhooks_workspace_id"), "webhooks", ["workspace_id"], unique=False)
    op.create_index(
        "uq_webhooks_name", "webhooks", ["name", sa.literal_column("coalesce(workspace_id, 0)")], unique=True
    )
    op.create_table(
        "webhook_triggers",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("webhook_id", sa.BigInteger(), nullable=False),
        sa.Column("trigger_type", sa.Text(), nullable=False),
        sa.Column(
            "condition",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name=op.f("fk_webhook_triggers_webhook_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_triggers")),
    )
    op.create_index(op.f("ix_webhook_triggers_webhook_id"), "webhook_triggers", ["webhook_id"], unique=False)
    op.create_index(op.f("ix_webhook_triggers_trigger_type"), "webhook_triggers", ["trigger_type"], unique=False)
    op.create_table(
        "webhook_fired_triggers",
        sa.Column("trigger_id", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trigger_id"],
            ["webhook_triggers.id"],
            name=op.f("fk_webhook_fired_triggers_trigger_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("trigger_id", "key", name=op.f("pk_webhook_fired_triggers")),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("webhook_id", sa.BigInteger(), nullable=False),
        sa.Column("event_id", sa.UUID(as_uuid=False), nullable=False),
        sa.Column("event", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name=op.f("fk_webhook_deliveries_webhook_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_deliveries")),
    )
    op.create_index("uq_webhook_deliveries_event", "webhook_deliveries", ["webhook_id", "event_id"], unique=True)
    op.create_index("ix_webhook_deliveries_next", "webhook_deliveries", ["webhook_id", "next_at"], unique=False)
    op.create_table(
        "config_policies",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("workspace_id", sa.BigInteger(), nullable=True),
        sa.Column("workload_type", sa.Text(), nullable=False),
        sa.Column("invariant_config", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("constraints", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("updated_by", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["updated_by"], ["users.id"], name=op.f("fk_config_policies_updated_by")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_config_policies_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_config_policies")),
    )
    op.create_index(
        "uq_config_policies",
        "config_policies",
        [sa.literal_column("coalesce(workspace_id, 0)"), "workload_type"],
        unique=True,
    )
    op.create_table(
        "usage_days",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("aggregation_type", sa.Text(), nullable=False),
        sa.Column("aggregation_key", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("day", "aggregation_type", "aggregation_key", name=op.f("pk_usage_days")),
    )
    op.create_table(
        "audit_records",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False, start=1), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=True),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("allocation_id", sa.Text(), nullable=True),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        *(
            sa.Column(
                name,
                postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
                server_default=sa.text(f"'{empty}'::jsonb"),
                nullable=False,
            )
            for name, empty in (("target", "{}"), ("details", "{}"), ("changed", "[]"))
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_records")),
    )
    op.create_index("ix_audit_records_recorded_at", "audit_records", ["recorded_at"], unique=False)
    op.create_table(
        "imports",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("source", name=op.f("pk_imports")),
    )
    op.create_table(
        "import_progress",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("last_key", sa.Text(), nullable=True),
        sa.Column("imported", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("in_source", sa.BigInteger(), nullable=True),
        sa.Column(
            "skipped",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("in_target", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["source"], ["imports.source"], name=op.f("fk_import_progress_source"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("source", "kind", name=op.f("pk_import_progress")),
    )
    op.create_table(
        "pool_bindings",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("pool", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_pool_bindings_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("workspace_id", "pool", name=op.f("pk_pool_bindings")),
    )


def _create_provisioned_tables() -> None:
    """What a provider of identities says, and how it is known."""
    op.create_table(
        "scim_users",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("display_name", sa.Text(), server_default="", nullable=False),
        sa.Column(
            "name",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "emails",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_scim_users_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scim_users")),
        sa.UniqueConstraint("user_id", name=op.f("uq_scim_users_user_id")),
    )
    op.create_table(
        "oauth_clients",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("domain", sa.Text(), nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_oauth_clients")),
    )
    op.create_table(
        "oauth_tokens",
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("redirect_uri", sa.Text(), server_default="", nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["client_id"], ["oauth_clients.id"], name=op.f("fk_oauth_tokens_client_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_oauth_tokens")),
    )
    op.create_index(op.f("ix_oauth_tokens_client_id"), "oauth_tokens", ["client_id"], unique=False)
