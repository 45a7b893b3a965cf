"""Task specifications for launchers: everything that runs an allocation, from the rows that describe its task.

Read at the last moment, when it gets its slots or its order has to be written again: then the latest checkpoint is the
latest, and the owner's POSIX identity is the present one. Source: docs/reference/harness-protocol.md 4;
docs/reference/experiments.md 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import distinct_on

from libs.cluster.config import ClusterConfig
from libs.config.stored import number_in, part
from libs.db.engine import Connection
from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.cluster import cluster as cluster_table
from libs.db.tables.cluster import node_overrides
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import jobs, tasks
from libs.db.tables.trials import trial_tasks, trials
from libs.db.tables.users import users
from libs.db.tables.workspaces import workspaces
from libs.events.orders import Owner, TaskSpec, TrialTask
from libs.tasks.environments import (
    AgentLink,
    bind_mounts_of,
    environment_of,
    network_variables,
    owner_of_task,
    proxy_ports_of,
    shared_fs_path,
)
from libs.tasks.stored import from_document
from libs.tasks.users_pods import from_column
from libs.tracing import TraceContext, parse_traceparent
from services.scheduler.allocations.task_tokens import TaskTokens
from services.scheduler.transactions.rows import AllocationRow

Row = Mapping[Any, Any]


class TaskMaterial:
    """The rows behind a batch of allocations, read with a handful of queries however many there are."""

    def __init__(self, *, cluster: ClusterConfig, cluster_id: str) -> None:
        self._cluster = cluster
        self._cluster_id = cluster_id
        self._tasks: dict[str, Row] = {}
        self._trials: dict[str, Row] = {}
        self._experiments: dict[int, Row] = {}
        self._latest: dict[int, Row] = {}
        self._disabled_nodes: list[str] = []

    @classmethod
    async def load(
        cls, connection: Connection, rows: Sequence[AllocationRow], *, cluster: ClusterConfig
    ) -> TaskMaterial:
        cluster_id = (await connection.execute(select(cluster_table.c.cluster_id))).scalar_one()
        material = cls(cluster=cluster, cluster_id=cluster_id)
        ids = [row.task_id for row in rows]
        material._tasks = {found["task_id"]: found for found in await _fetch(connection, _tasks_query(ids))}
        material._trials = {found["task_id"]: found for found in await _fetch(connection, _trials_query(ids))}
        of_trials = select(experiments).where(
            experiments.c.id.in_({found["experiment_id"] for found in material._trials.values()}),
        )
        material._experiments = {found["id"]: found for found in await _fetch(connection, of_trials)}
        latest = _latest_query([found["id"] for found in material._trials.values()])
        material._latest = {found["trial_id"]: found for found in await _fetch(connection, latest)}
        material._disabled_nodes = list((await connection.execute(select(node_overrides.c.node))).scalars())
        return material

    def is_whole(self, row: AllocationRow) -> bool:
        """Whether everything is there without which there is no task: not so when its workspace is gone."""
        return row.task_id in self._tasks

    def owner_id(self, row: AllocationRow) -> int:
        """Of one that is whole."""
        return int(self._tasks[row.task_id]["owner_id"])

    def priority(self, row: AllocationRow) -> int | None:
        """Of its job, at present."""
        return self._tasks[row.task_id]["priority"] if self.is_whole(row) else None

    def trace(self, row: AllocationRow) -> TraceContext | None:
        """Where it belongs: to what requested it or, when that was not traced, to the submission of its job."""
        job = self._tasks[row.task_id]["traceparent"] if self.is_whole(row) else None
        return parse_traceparent(row.traceparent or job)

    def is_trial(self, row: AllocationRow) -> bool:
        return row.task_id in self._trials

    def spec(self, row: AllocationRow, tokens: TaskTokens) -> TaskSpec:
        """Raises KeyError, TypeError or msgspec.ValidationError when what is stored makes no task."""
        return self._trial_spec(row, tokens) if self.is_trial(row) else self._other_spec(row, tokens)

    def _trial_spec(self, row: AllocationRow, tokens: TaskTokens) -> TaskSpec:
        task, trial = self._tasks[row.task_id], self._trials[row.task_id]
        experiment = self._experiments[trial["experiment_id"]]
        config: dict[str, Any] = experiment["config"]
        defaults = self._cluster.defaults_of(row.pool)
        shm_size = number_in(part(config, "resources"), "shm_size")
        return TaskSpec(
            task=row.task_id,
            task_type="TRIAL",
            name=row.name,
            description=f"exp-{experiment['id']}-trial-{trial['id']}-attempt-{trial['run_id']}",
            cluster_id=self._cluster_id,
            workspace=task["workspace"],
            owner=self._owner(task),
            slots=row.slots,
            num_pods=row.num_pods,
            session_token=tokens.session,
            user_token=tokens.user,
            environment=environment_of(config["environment"], self._cluster.slot_type if row.slots else "cpu"),
            users_pod=from_column(experiment["users_pod"]),
            trial=self._trial(trial, experiment),
            extra_environment=network_variables(defaults),
            startup_hook=defaults.startup_hook,
            bind_mounts=bind_mounts_of(config),
            shared_fs_host_path=shared_fs_path(config.get("checkpoint_storage")),
            proxy_ports=proxy_ports_of(config["environment"], row.task_id),
            ports=dict(row.ports),
            network_mode=defaults.network_mode,
            shm_size_bytes=int(shm_size) if shm_size is not None else defaults.shm_size_bytes,
            blocked_nodes=self._blocked_nodes(row),
            priority=row.priority,
            submitted_at=task["submitted_at"],
            log_outage_wait_s=self._cluster.log_outage_wait_s(row.pool),
            traceparent=row.traceparent,
        )

    def _trial(self, trial: Row, experiment: Row) -> TrialTask:
        latest = self._latest.get(trial["id"])
        return TrialTask(
            experiment_id=experiment["id"],
            trial_id=trial["id"],
            trial_run_id=trial["run_id"],
            seed=trial["seed"],
            config=experiment["config"],
            hparams=trial["hparams"],
            # A warm start begins at step 0: the steps are those of the trial's own checkpoint only.
            steps_completed=(latest["steps_completed"] or 0) if latest else 0,
            latest_checkpoint=latest["uuid"] if latest else trial["warm_start_checkpoint_uuid"],
            ssh_private_key=experiment["ssh_private_key"],
            ssh_public_key=experiment["ssh_public_key"],
        )

    def _other_spec(self, row: AllocationRow, tokens: TaskTokens) -> TaskSpec:
        task = self._tasks[row.task_id]
        stored = from_document(task["spec"])
        defaults = self._cluster.defaults_of(row.pool)
        is_gc = task["task_type"] == "CHECKPOINT_GC"
        return TaskSpec(
            task=row.task_id,
            task_type=task["task_type"],
            name=row.name,
            description=stored.description,
            cluster_id=self._cluster_id,
            workspace=task["workspace"],
            owner=self._owner(task),
            slots=row.slots,
            num_pods=row.num_pods,
            session_token=tokens.session,
            user_token=tokens.user,
            environment=stored.environment,
            users_pod=stored.users_pod,
            argv=stored.argv,
            extra_environment=(*network_variables(defaults), *stored.extra_environment),
            files=stored.files,
            work_dir=stored.work_dir,
            startup_hook="" if is_gc else defaults.startup_hook,
            bind_mounts=stored.bind_mounts,
            shared_fs_host_path=stored.shared_fs_host_path,
            proxy_ports=stored.proxy_ports,
            network_mode=defaults.network_mode,
            shm_size_bytes=stored.shm_size_bytes if stored.shm_size_bytes is not None else defaults.shm_size_bytes,
            blocked_nodes=self._blocked_nodes(row),
            priority=row.priority,
            submitted_at=task["submitted_at"],
            log_outage_wait_s=self._cluster.log_outage_wait_s(row.pool),
            traceparent=row.traceparent,
        )

    def _blocked_nodes(self, row: AllocationRow) -> tuple[str, ...]:
        """Those excluded for the task and, where they say so to nobody else, those that are disabled.

        Nodes of a cluster bear a label while they are disabled. What a pod is told here it is told for life, and it may
        wait for longer than that.
        """
        on_kubernetes = self._cluster.resource_manager.marks_disabled_nodes
        return tuple(sorted({*row.blocked_nodes, *(() if on_kubernetes else self._disabled_nodes)}))

    def _owner(self, task: Row) -> Owner:
        return owner_of_task(
            task["username"],
            default=self._cluster.security.default_task,
            user=AgentLink(uid=task["u_uid"], user=task["u_user"], gid=task["u_gid"], group=task["u_group"]),
            workspace=AgentLink(uid=task["w_uid"], user=task["w_user"], gid=task["w_gid"], group=task["w_group"]),
        )


def _tasks_query(ids: Sequence[str]) -> Any:
    return (
        select(
            tasks.c.task_id,
            tasks.c.task_type,
            tasks.c.owner_id,
            tasks.c.spec,
            jobs.c.priority,
            jobs.c.submitted_at,
            jobs.c.traceparent,
            users.c.username,
            users.c.agent_uid.label("u_uid"),
            users.c.agent_user.label("u_user"),
            users.c.agent_gid.label("u_gid"),
            users.c.agent_group.label("u_group"),
            workspaces.c.name.label("workspace"),
            workspaces.c.agent_uid.label("w_uid"),
            workspaces.c.agent_user.label("w_user"),
            workspaces.c.agent_gid.label("w_gid"),
            workspaces.c.agent_group.label("w_group"),
        )
        .join(users, users.c.id == tasks.c.owner_id)
        .join(workspaces, workspaces.c.id == tasks.c.workspace_id)
        .outerjoin(jobs, jobs.c.job_id == tasks.c.job_id)
        .where(tasks.c.task_id.in_(ids))
    )


def _trials_query(ids: Sequence[str]) -> Any:
    return (
        select(
            trial_tasks.c.task_id,
            trials.c.id,
            trials.c.experiment_id,
            trials.c.run_id,
            trials.c.seed,
            trials.c.hparams,
            trials.c.warm_start_checkpoint_uuid,
        )
        .join(trials, trials.c.id == trial_tasks.c.trial_id)
        .where(trial_tasks.c.task_id.in_(ids))
    )


def _latest_query(trial_ids: Sequence[int]) -> Any:
    """The COMPLETED checkpoint with most steps of each trial; among equal ones the newest."""
    return (
        select(checkpoints.c.trial_id, checkpoints.c.uuid, checkpoints.c.steps_completed)
        .ext(distinct_on(checkpoints.c.trial_id))
        .where(checkpoints.c.trial_id.in_(trial_ids), checkpoints.c.state == "COMPLETED")
        .order_by(
            checkpoints.c.trial_id,
            checkpoints.c.steps_completed.desc().nulls_last(),
            checkpoints.c.report_time.desc(),
        )
    )


async def _fetch(connection: Connection, query: Any) -> list[Row]:
    return list((await connection.execute(query)).mappings())
