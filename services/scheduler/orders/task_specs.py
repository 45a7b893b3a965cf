"""Task specifications for launchers: everything that runs an allocation, from the rows that describe its task.

Read at the last moment, when it gets its slots or its order has to be written again: then the latest checkpoint is the
latest, and the owner's POSIX identity is the present one. Source: docs/reference/harness-protocol.md 4;
docs/reference/experiments.md 0.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, Final

from libs.cluster.config import ClusterConfig
from libs.config.differences import overlaid
from libs.config.stored import number_in, part
from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement, Row
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
from services.scheduler.allocations.pod_sizes import uneven_sizes
from services.scheduler.allocations.task_tokens import TaskTokens
from services.scheduler.orders.disabled_nodes import disabled_nodes
from services.scheduler.transactions.rows import AllocationRow

# A task of a trial comes with the COMPLETED checkpoint with most steps of it; among equal ones the newest.
_TASKS: Final = PreparedStatement("""
    SELECT t.task_id, t.task_type, t.owner_id, t.spec, j.priority, j.submitted_at, j.queue_position, j.traceparent,
           u.username,
           u.agent_uid AS u_uid, u.agent_user AS u_user, u.agent_gid AS u_gid, u.agent_group AS u_group,
           w.name AS workspace,
           w.agent_uid AS w_uid, w.agent_user AS w_user, w.agent_gid AS w_gid, w.agent_group AS w_group,
           (SELECT cluster_id FROM cluster) AS cluster_id,
           r.id, r.experiment_id, r.run_id, r.seed, r.hparams, r.warm_start_checkpoint_uuid,
           latest.uuid AS latest_uuid, latest.steps_completed AS latest_steps,
           (SELECT jsonb_object_agg(o.pool, o.changes) FROM pool_offers o WHERE o.job_id = t.job_id AND o.rank > 0)
               AS changes_in_pools
    FROM tasks t
    JOIN users u ON u.id = t.owner_id
    JOIN workspaces w ON w.id = t.workspace_id
    LEFT JOIN jobs j ON j.job_id = t.job_id
    LEFT JOIN trial_tasks k ON k.task_id = t.task_id
    LEFT JOIN trials r ON r.id = k.trial_id
    LEFT JOIN LATERAL (
        SELECT c.uuid, c.steps_completed FROM checkpoints c WHERE c.trial_id = r.id AND c.state = 'COMPLETED'
        ORDER BY c.steps_completed DESC NULLS LAST, c.report_time DESC LIMIT 1
    ) latest ON true
    WHERE t.task_id = ANY(:tasks)
""")
_EXPERIMENTS: Final = PreparedStatement("""
    SELECT id, config, users_pod, ssh_private_key, ssh_public_key FROM experiments WHERE id = ANY(:experiments)
""")


class TaskMaterial:
    """The rows behind a batch of allocations, read with a handful of queries however many there are."""

    def __init__(self, *, cluster: ClusterConfig) -> None:
        self._cluster = cluster
        self._tasks: dict[str, Row] = {}
        self._trials: dict[str, Row] = {}
        self._experiments: dict[int, Row] = {}
        self._disabled_nodes: Set[str] = frozenset()
        self._sees_nodes = True

    @classmethod
    async def load(
        cls,
        connection: Connection,
        rows: Sequence[AllocationRow],
        *,
        cluster: ClusterConfig,
        disabled: Set[str] | None = None,
        sees_nodes: bool = True,
    ) -> TaskMaterial:
        """
        disabled    the nodes that are, where they have been read
        sees_nodes  whether the launcher of ``rows`` does, or its slots are assumed
        """
        ids = [row.task_id for row in rows]
        material = cls(cluster=cluster)
        material._tasks = {found["task_id"]: found for found in await _TASKS.rows(connection, tasks=ids)}
        material._trials = {task: found for task, found in material._tasks.items() if found["id"] is not None}
        origins = list({found["experiment_id"] for found in material._trials.values()})
        if origins:
            found_experiments = await _EXPERIMENTS.rows(connection, experiments=origins)
            material._experiments = {found["id"]: found for found in found_experiments}
        material._disabled_nodes = await disabled_nodes(connection) if disabled is None else disabled
        material._sees_nodes = sees_nodes
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
        config: dict[str, Any] = overlaid(experiment["config"], _changes(task, row))
        defaults = self._cluster.defaults_of(row.pool)
        shm_size = number_in(part(config, "resources"), "shm_size")
        return TaskSpec(
            task=row.task_id,
            task_type="TRIAL",
            name=row.name,
            description=f"exp-{experiment['id']}-trial-{trial['id']}-attempt-{trial['run_id']}",
            cluster_id=task["cluster_id"],
            workspace=task["workspace"],
            owner=self._owner(task),
            slots=row.slots,
            num_pods=row.num_pods,
            **_division(row),
            session_token=tokens.session,
            user_token=tokens.user,
            environment=environment_of(config["environment"], self._cluster.slot_type if row.slots else "cpu"),
            users_pod=from_column(experiment["users_pod"]),
            trial=self._trial(trial, experiment, config),
            extra_environment=network_variables(defaults),
            startup_hook=defaults.startup_hook,
            bind_mounts=bind_mounts_of(config),
            shared_fs_host_path=shared_fs_path(config.get("checkpoint_storage")),
            proxy_ports=proxy_ports_of(config["environment"], row.task_id),
            ports=dict(row.ports),
            network_mode=defaults.network_mode,
            shm_size_bytes=int(shm_size) if shm_size is not None else defaults.shm_size_bytes,
            blocked_nodes=self._blocked_nodes(row),
            nodes=self._given(row, bound=True),
            preferred_nodes=self._given(row, bound=False),
            priority=row.priority,
            submitted_at=task["submitted_at"],
            queue_position=_position(task),
            log_outage_wait_s=self._cluster.log_outage_wait_s(row.pool),
            traceparent=row.traceparent,
        )

    def _trial(self, trial: Row, experiment: Row, config: dict[str, Any]) -> TrialTask:
        return TrialTask(
            experiment_id=experiment["id"],
            trial_id=trial["id"],
            trial_run_id=trial["run_id"],
            seed=trial["seed"],
            config=config,
            hparams=trial["hparams"],
            # A warm start begins at step 0: the steps are those of the trial's own checkpoint only.
            steps_completed=trial["latest_steps"] or 0,
            latest_checkpoint=trial["latest_uuid"] or trial["warm_start_checkpoint_uuid"],
            ssh_private_key=experiment["ssh_private_key"],
            ssh_public_key=experiment["ssh_public_key"],
        )

    def _other_spec(self, row: AllocationRow, tokens: TaskTokens) -> TaskSpec:
        task = self._tasks[row.task_id]
        stored = from_document(overlaid(task["spec"], _changes(task, row)))
        defaults = self._cluster.defaults_of(row.pool)
        is_gc = task["task_type"] == "CHECKPOINT_GC"
        return TaskSpec(
            task=row.task_id,
            task_type=task["task_type"],
            name=row.name,
            description=stored.description,
            cluster_id=task["cluster_id"],
            workspace=task["workspace"],
            owner=self._owner(task),
            slots=row.slots,
            num_pods=row.num_pods,
            **_division(row),
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
            nodes=self._given(row, bound=True),
            preferred_nodes=self._given(row, bound=False),
            priority=row.priority,
            submitted_at=task["submitted_at"],
            queue_position=_position(task),
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

    def _given(self, row: AllocationRow, *, bound: bool) -> tuple[str, ...]:
        """The nodes that it was given, if its pods are bound to them, or else if they are not.

        Gangs of pools with a topology are, as other nodes may not be near each other. All others only prefer theirs, or
        nodes and racks that plans keep whole would be opened all the same: the scheduler of the cluster decides, which
        knows better what has become of the nodes since. What launchers that see no nodes were given are names that no
        node has.
        """
        pool = self._cluster.pool(row.pool)
        if not self._sees_nodes or pool is None:
            return ()
        is_bound = row.num_pods > 1 and self._cluster.scheduler_of(pool).topology is not None
        return tuple(sorted({place["node"] for place in row.places})) if bound is is_bound else ()

    def _owner(self, task: Row) -> Owner:
        return owner_of_task(
            task["username"],
            default=self._cluster.security.default_task,
            user=AgentLink(uid=task["u_uid"], user=task["u_user"], gid=task["u_gid"], group=task["u_group"]),
            workspace=AgentLink(uid=task["w_uid"], user=task["w_user"], gid=task["w_gid"], group=task["w_group"]),
        )


def _changes(task: Row, row: AllocationRow) -> dict[str, Any]:
    """What is different of a task in the pool in which it runs, where that is not its own."""
    found: dict[str, Any] = (task["changes_in_pools"] or {}).get(row.pool, {})
    return found


def _position(task: Row) -> str:
    return "" if task["queue_position"] is None else str(int(task["queue_position"]))


def _division(row: AllocationRow) -> dict[str, Any]:
    """The pods, where they differ in slots."""
    sizes = uneven_sizes(row.places)
    return {"pod_slots": sizes, "pod_nodes": tuple(place["node"] for place in row.places)} if sizes else {}
