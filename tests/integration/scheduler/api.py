"""The api as the scheduler meets it: its real actions, one transaction each, and reads of what has come of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import delete, insert, select, text
from sqlalchemy.engine import RowMapping

from libs.bus import Bus
from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig
from libs.config.defaults import with_defaults
from libs.config.experiment import normalise_experiment_config
from libs.db.engine import Connection, Database
from libs.db.jobs.pool_offers import PoolOffer
from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.experiments import experiments, searcher_snapshots
from libs.db.tables.tasks import allocations, tasks
from libs.db.tables.trials import trial_tasks, trials
from libs.events.orders import UsersPod
from libs.ids import UserId
from libs.searchers.search_start import start_search
from services.api.access.principal import Principal
from services.api.access.rights.rights import UserRights
from services.api.actions.checkpoints.files import delete_tensorboard_files, remove_files
from services.api.actions.cluster import agents
from services.api.actions.cluster.jobs import update_queue
from services.api.actions.experiments import states
from services.api.actions.experiments.create import store_experiment
from services.api.actions.experiments.edit import edit
from services.api.actions.experiments.insertion import NewExperiment
from services.api.actions.experiments.move import move
from services.api.actions.experiments.project import DEFAULT_PROJECT, load_project
from services.api.actions.tasks.allocations import (
    acknowledge_preemption,
    report_ready,
    request_kill,
    request_preemption,
)
from services.api.actions.trials.reports import (
    EARLY_EXIT_GRACE,
    lock_experiment_of,
    report_early_exit,
    report_progress,
    tell_search,
)
from services.api.actions.trials.trials import kill_trial
from services.api.actions.workspaces.workspaces import delete_workspace
from services.api.wire.cluster.jobs import QueueControl
from services.api.wire.experiments.experiments import PatchExperiment, PatchResources
from tests.builders import NO_FILES
from tests.harness import eventually
from tests.harness.app import new_app

SINGLE: Final[dict[str, Any]] = {"name": "single", "metric": "loss"}
OWNER: Final = Principal(user_id=UserId(2), username="determined")
"""Of all that these tests make."""

NOTHING_OF_USERS: Final = UsersPod()

Action = Callable[[Connection], Awaitable[Any]]


class Api:
    def __init__(self, db: Database, bus: Bus) -> None:
        self.db = db
        self._app = new_app(db, bus, SystemClock())

    async def create(
        self,
        *,
        activate: bool = True,
        searcher: dict[str, Any] = SINGLE,
        hyperparameters: dict[str, Any] | None = None,
        slots: int = 1,
        seed: int = 7,
        pool: str = "default",
        users_pod: UsersPod = NOTHING_OF_USERS,
        offers: tuple[PoolOffer, ...] = (),
        **config: Any,
    ) -> int:
        """Store an experiment as it is described here, whether or not the api would accept it."""
        given = {
            "entrypoint": "python3 train.py",
            "searcher": searcher,
            "hyperparameters": hyperparameters or {},
            "resources": {"slots_per_trial": slots, "resource_pool": pool},
            "reproducibility": {"experiment_seed": seed},
            "checkpoint_storage": {"type": "shared_fs", "host_path": "/checkpoints"},
            "preemption_timeout": 3600,
            **config,
        }
        stored = with_defaults(normalise_experiment_config(given), seed=seed, name="test")
        async with self.db.read() as connection:
            project = await load_project(connection, DEFAULT_PROJECT)
        new = NewExperiment(
            config=stored,
            users_pod=users_pod,
            original_config="",
            project=project,
            pool=pool,
            model_definition=NO_FILES,
            parent_id=None,
            activate=activate,
            search=start_search(stored),
            offers=offers,
        )
        return (await store_experiment(self._app, new, OWNER, now=datetime.now(UTC))).id

    async def forget_search(self, experiment: int) -> None:
        """Take away the trials of an experiment and what its search knows, as of one that has to begin again."""
        mine = select(trials.c.id).where(trials.c.experiment_id == experiment)
        async with self.db.transaction() as connection:
            of_trials = trial_tasks.c.trial_id.in_(mine)
            its_tasks = list((await connection.execute(select(trial_tasks.c.task_id).where(of_trials))).scalars())
            await connection.execute(delete(trial_tasks).where(of_trials))
            await connection.execute(delete(tasks).where(tasks.c.task_id.in_(its_tasks)))
            await connection.execute(delete(trials).where(trials.c.experiment_id == experiment))
            await connection.execute(delete(searcher_snapshots).where(searcher_snapshots.c.experiment_id == experiment))

    async def activate(self, experiment: int) -> None:
        await self._act(lambda connection: states.activate(connection, experiment))

    async def pause(self, experiment: int) -> None:
        await self._act(lambda connection: states.pause(connection, experiment))

    async def cancel(self, experiment: int) -> None:
        await self._act(lambda connection: states.cancel(connection, experiment))

    async def kill(self, experiment: int) -> None:
        await self._act(lambda connection: states.kill(connection, experiment))

    async def delete(self, experiment: int, *, force: bool = False) -> None:
        """``force``: without its files, as administrators may."""
        principal = Principal(user_id=UserId(1), username="admin", admin=True) if force else OWNER
        await self._act(lambda connection: states.delete(connection, experiment, UserRights(principal), force=force))

    async def move(self, experiment: int, project: int) -> None:
        await self._act(lambda connection: move(connection, experiment, project, UserRights(OWNER)))

    async def move_to_pool(self, experiment: int, pool: str, *, cluster: ClusterConfig) -> None:
        [job] = await self.sql("SELECT job_id FROM experiments WHERE id = :e", e=experiment)
        wanted = [QueueControl(job_id=job, resource_pool=pool)]
        await update_queue(self.db, wanted, clock=self._app.clock, cluster=cluster, capacity=self._app.capacity)

    async def delete_workspace(self, workspace: int) -> None:
        principal = Principal(user_id=UserId(1), username="admin", admin=True)
        await delete_workspace(self.db, workspace, rights=UserRights(principal))

    async def set_priority(self, experiment: int, priority: int, *, notify: bool = True) -> None:
        patch = PatchExperiment(resources=PatchResources(priority=priority))

        async def change(connection: Connection) -> None:
            await edit(connection, experiment, patch, larger_priority_first=False)

        await self._act(change, notify=notify)

    async def kill_trial(self, trial: int) -> None:
        await self._act(lambda connection: kill_trial(connection, trial))

    async def tell_search(self, trial: int, kind: str, payload: dict[str, Any]) -> None:
        """What the api leaves for a search with the report of metrics that it stores."""

        async def tell(connection: Connection) -> None:
            await tell_search(connection, await lock_experiment_of(connection, trial), trial, kind, payload)

        await self._act(tell)

    async def report_progress(self, trial: int, progress: float) -> None:
        await self._act(lambda connection: report_progress(connection, trial, progress))

    async def report_invalid_hp(self, trial: int, *, deadline_s: float = EARLY_EXIT_GRACE.total_seconds()) -> None:
        now = datetime.now(UTC) + timedelta(seconds=deadline_s) - EARLY_EXIT_GRACE
        await self._act(lambda connection: report_early_exit(connection, trial, "INVALID_HP", now))

    async def ready(self, allocation: str) -> None:
        await self._act(lambda connection: report_ready(connection, allocation, datetime.now(UTC)))

    async def ack(self, allocation: str) -> None:
        await self._act(lambda connection: acknowledge_preemption(connection, allocation))

    async def request_preemption(self, allocation: str, *, notify: bool = True) -> None:
        await self._act(lambda connection: request_preemption(connection, allocation), notify=notify)

    async def request_kill(self, allocation: str, *, notify: bool = True) -> None:
        reason = "user requested kill"
        await self._act(lambda connection: request_kill(connection, allocation, reason=reason), notify=notify)

    async def remove_files(
        self,
        experiment: int,
        uuids: Sequence[str],
        globs: Sequence[str],
        *,
        storage_id: int | None = None,
        notify: bool = True,
    ) -> None:
        """Ask for files of checkpoints of the experiment, which are there from then on."""

        async def ask(connection: Connection) -> None:
            known = set((await connection.execute(select(checkpoints.c.uuid))).scalars())
            columns = {"task_id": "task", "experiment_id": experiment, "storage_id": storage_id, "state": "COMPLETED"}
            new = [{"uuid": uuid, "report_time": datetime.now(UTC), **columns} for uuid in uuids if uuid not in known]
            if new:
                await connection.execute(insert(checkpoints), new)
            await remove_files(connection, uuids, globs)

        await self._act(ask, notify=notify)

    async def delete_tensorboard_files(self, experiment: int) -> None:
        await self._act(lambda connection: delete_tensorboard_files(connection, experiment, UserRights(OWNER)))

    async def disable_node(self, node: str, *, drain: bool) -> None:
        await agents.disable_node(self.db, node, drain=drain, pools=["default"])

    async def enable_node(self, node: str) -> None:
        await agents.enable_node(self.db, node, pools=["default"])

    async def _act(self, action: Action, *, notify: bool = True) -> None:
        """``notify``: whether anybody hears of it; otherwise its events are lost."""
        async with self.db.transaction() as connection:
            await action(connection)
            if not notify:
                await connection.execute(text("DELETE FROM outbox WHERE xmin = pg_current_xact_id()::xid"))

    async def experiment(self, ident: int) -> RowMapping | None:
        async with self.db.read() as connection:
            query = select(experiments).where(experiments.c.id == ident)
            return (await connection.execute(query)).mappings().first()

    async def state(self, ident: int) -> str | None:
        row = await self.experiment(ident)
        return row["state"] if row else None

    async def trials(self, experiment: int) -> list[RowMapping]:
        async with self.db.read() as connection:
            query = select(trials).where(trials.c.experiment_id == experiment).order_by(trials.c.id)
            return list((await connection.execute(query)).mappings())

    async def allocations(self, experiment: int | None = None) -> list[RowMapping]:
        async with self.db.read() as connection:
            query = select(allocations).order_by(allocations.c.requested_at, allocations.c.allocation_id)
            rows = (await connection.execute(query)).mappings()
            return [row for row in rows if experiment is None or row["task_id"].startswith(f"{experiment}.")]

    async def allocation(self, ident: str) -> RowMapping:
        return next(row for row in await self.allocations() if row["allocation_id"] == ident)

    async def sql(self, statement: str, **parameters: Any) -> list[Any]:
        async with self.db.transaction() as connection:
            result = await connection.execute(text(statement), parameters)
            return list(result.scalars()) if result.returns_rows else []

    async def ended(self, experiment: int, state: str) -> None:
        await eventually(self._is(experiment, state), what=f"experiment {experiment} is {state}")

    def _is(self, experiment: int, state: str) -> Callable[[], Any]:
        async def look() -> bool:
            return await self.state(experiment) == state

        return look
