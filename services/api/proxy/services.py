"""Services: the ports of tasks that can be reached, and where, as the database has them.

Nothing of this is stored for the proxy: it follows from what a task is and where it runs, so any replica can lead to
any task, and a restart loses nothing. What was found is remembered for a few seconds, and forgotten at once when the
bus has news of an allocation of the task. Source: docs/reference/tasks-and-cli.md 4.1.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from sqlalchemy import and_, select

from libs.bus import Bus, CoreMessage
from libs.db.engine import Database
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import allocations, tasks
from libs.events import subjects
from libs.events.changes import AllocationChanged
from libs.events.observations import ObservedPod
from libs.events.orders import ProxyPort
from libs.states.allocation import AllocationState
from libs.tasks.environments import proxy_ports_of
from libs.tasks.interactive.containers import SERVER_TOKEN
from services.api.proxy.paths import task_of
from services.api.proxy.targets import Target, target_of

REMEMBER_S: Final = 10.0
STARTING_REMEMBER_S: Final = 0.5
"""Of a service that cannot be reached yet; not all that makes it so is told."""
MOST_REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxiedService:
    """One port of a task that has not ended.

    target      where it is reached; None while the task starts
    allocation  the attempt that runs; None between two of them
    server_token  what the server in the task asks for in place of a proxy token; "" where it asks for none of ours
    """

    service_id: str
    task_id: str
    task_type: str
    owner_id: int
    workspace_id: int
    experiment_id: int | None
    port: ProxyPort
    target: Target | None
    allocation: str | None
    server_token: str = ""

    @property
    def is_notebook(self) -> bool:
        """Whether it is the server of a notebook itself, and not another port of one."""
        return self.task_type == "NOTEBOOK" and self.service_id == self.task_id


class Services:
    """The services of an installation, as far as somebody has asked for them lately."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._known: dict[str, tuple[float, Mapping[str, ProxiedService]]] = {}
        self._forgotten = 0

    async def find(self, service_id: str) -> ProxiedService | None:
        """None when no task that lives has such a port. Raises Unavailable."""
        task_id = task_of(service_id)
        known = self._known.get(task_id)
        if known is not None and known[0] > time.monotonic():
            return known[1].get(service_id)
        forgotten = self._forgotten
        found = await self._look_up(task_id)
        # Only what exists: nobody shall fill our memory with names that they make up.
        if found and forgotten == self._forgotten:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            is_reachable = all(service.target is not None for service in found.values())
            remember_s = REMEMBER_S if is_reachable else STARTING_REMEMBER_S
            self._known[task_id] = (time.monotonic() + remember_s, found)
        return found.get(service_id)

    def forget(self, task_id: str | None = None) -> None:
        """Forget a task, or all of them."""
        self._forgotten += 1
        if task_id is None:
            self._known.clear()
        else:
            self._known.pop(task_id, None)

    @asynccontextmanager
    async def listening(self, bus: Bus) -> AsyncIterator[None]:
        """Forget what the bus has news of, while the block runs. Raises Unavailable when it is away."""

        async def changed(message: CoreMessage) -> None:
            self.forget(msgspec.json.decode(message.data, type=AllocationChanged).task_id)

        async with bus.subscribe(subjects.events_of("allocation"), changed, on_gap=self.forget):
            yield

    async def _look_up(self, task_id: str) -> dict[str, ProxiedService]:
        lives = and_(allocations.c.task_id == tasks.c.task_id, allocations.c.state != AllocationState.TERMINATED)
        query = (
            select(
                tasks.c.task_id,
                tasks.c.task_type,
                tasks.c.owner_id,
                tasks.c.workspace_id,
                tasks.c.experiment_id,
                tasks.c.spec["proxy_ports"].label("own_ports"),
                tasks.c.spec["extra_environment"].label("variables"),
                experiments.c.config["environment"].label("environment"),
                allocations.c.allocation_id,
                allocations.c.proxy_address,
                allocations.c.pods,
            )
            .outerjoin(experiments, and_(experiments.c.id == tasks.c.experiment_id, tasks.c.task_type == "TRIAL"))
            .outerjoin(allocations, lives)
            .where(tasks.c.task_id == task_id, tasks.c.end_time.is_(None))
            .order_by(allocations.c.requested_at.desc().nulls_last())
            .limit(1)
        )
        async with self._db.read() as connection:
            row = (await connection.execute(query)).mappings().one_or_none()
        return {} if row is None else services_of(row)


def services_of(row: Mapping[Any, Any]) -> dict[str, ProxiedService]:
    """The services of a task, as it was looked up."""
    pods = msgspec.convert(row["pods"] or (), tuple[ObservedPod, ...])
    if row["environment"] is not None:
        ports = proxy_ports_of(row["environment"], row["task_id"])
    else:
        ports = msgspec.convert(row["own_ports"] or (), tuple[ProxyPort, ...])
    server_token = dict(row["variables"] or ()).get(SERVER_TOKEN, "")
    return {
        port.service_id: ProxiedService(
            service_id=port.service_id,
            task_id=row["task_id"],
            task_type=row["task_type"],
            owner_id=row["owner_id"],
            workspace_id=row["workspace_id"],
            experiment_id=row["experiment_id"],
            port=port,
            target=target_of(port.port, reported=row["proxy_address"], pods=pods),
            allocation=row["allocation_id"],
            server_token=server_token,
        )
        for port in ports
    }
