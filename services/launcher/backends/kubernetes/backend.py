"""The Kubernetes backend: what namespaces say, told to the loop, and what the loop wants, done in them.

Nothing is kept here that could not be read again from the cluster: a launcher that was killed finds its Jobs by their
label, and how they ended in their pods or, where those are gone, in an annotation.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Final

import structlog

from libs.clock import Clock
from libs.errors import InvalidRequest, NotFound, PermissionDenied, Unavailable
from libs.events.capacity import PoolCapacity
from libs.events.observations import AllocationObserved
from libs.events.orders import Order
from services.launcher.backends.kubernetes.allocations.creation import Creation
from services.launcher.backends.kubernetes.allocations.decisions import Reaction, observation, reaction
from services.launcher.backends.kubernetes.allocations.launch_record import Ledger
from services.launcher.backends.kubernetes.allocations.state import Refusal, Run, StopAsked
from services.launcher.backends.kubernetes.allocations.teardown import Actor
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.background import Background
from services.launcher.backends.kubernetes.capacity.tracker import Holdings
from services.launcher.backends.kubernetes.client.api import Refused
from services.launcher.backends.kubernetes.gateway.task_gateway import TaskGateway
from services.launcher.backends.kubernetes.manifests.names import job_name
from services.launcher.backends.kubernetes.namespaces.lifecycle import Namespaces
from services.launcher.places import Places
from services.launcher.reconcile import Existence

log = structlog.get_logger()

RETRY_S: Final = 2.0


class KubernetesBackend:
    """See ``backends/protocol.py`` for what the methods promise."""

    def __init__(
        self,
        *,
        cluster_id: str,
        tracker: Tracker,
        creation: Creation,
        actor: Actor,
        namespaces: Namespaces,
        holdings: Holdings,
        ledger: Ledger,
        places: Places,
        clock: Clock,
        gateway: TaskGateway | None = None,
    ) -> None:
        self._cluster_id = cluster_id
        self._tracker = tracker
        self._creation = creation
        self._actor = actor
        self._namespaces = namespaces
        self._holdings = holdings
        self._ledger = ledger
        self.places = places
        self._clock = clock
        self._gateway = gateway

    async def existing(self) -> Mapping[str, Existence]:
        return self._tracker.existing

    async def seek(self, order: Order) -> bool:
        if order.allocation not in self._tracker.runs:
            try:
                await self._namespaces.open(order.namespace or self._namespaces.own)
            except (NotFound, PermissionDenied, InvalidRequest) as error:
                # Where nobody can look there is nobody who could end anything either.
                log.info("kubernetes.not_sought", allocation=order.allocation, reason=str(error))
        return order.allocation in self._tracker.runs

    async def start(self, order: Order) -> None:
        known = self._tracker.runs.get(order.allocation)
        if known is not None:
            if known.is_fragment:
                self._go_on(known, order)
            return
        spec = order.spec
        name = job_name(spec, order.allocation, self._cluster_id) if spec is not None else order.allocation
        run = Run(
            allocation=order.allocation,
            task=spec.task if spec is not None else "",
            pool=self._tracker.pool,
            job_name=name,
            num_pods=spec.num_pods if spec is not None else 1,
            slots_per_pod=spec.slots_per_pod if spec is not None else 0,
            namespace=order.namespace or self._namespaces.own,
        )
        run.stage = "queued"
        if spec is None:
            run.refusal = Refusal(message="the order says run, but not what")
        if not self._tracker.add(run):
            raise Unavailable(f"the Job {name} of another allocation is still there")
        if run.refusal is None:
            self._creation.put(run, order)

    def _go_on(self, run: Run, order: Order) -> None:
        if run.job is not None:
            run.stage = "creating"  # and never only queued: what there is of it has to be ended, if anything
            self._creation.put(run, order)
        elif not run.pods:
            run.stage = "created"  # and deleted by somebody
        self._tracker.look(run)

    async def stop(self, allocation: str, *, grace_s: float, ordered: bool) -> None:
        run = self._tracker.runs.get(allocation)
        if run is None or run.refusal is not None:
            return
        if run.is_fragment:
            run.stage = "created"  # as far as it ever will be
        deadline = self._clock.now().timestamp() + grace_s
        before = run.stop
        if before is None or deadline < before.deadline:
            run.stop = StopAsked(
                ordered=ordered if before is None else before.ordered or ordered,
                was_whole=run.is_whole if before is None else before.was_whole,
                deadline=deadline,
            )
            run.stop_sent = False
            run.ask_to_end()
        if run.stage == "queued":
            run.refusal = Refusal(message="", withdrawn=True)
        self._tracker.look(run)  # and react to it

    async def remove(self, allocation: str) -> None:
        run = self._tracker.runs.get(allocation)
        if run is None or self._tracker.existing.get(allocation) is not Existence.ENDED:
            return
        if (run.job is not None or run.pods) and self._namespaces.is_open(run.namespace):
            # What cannot be removed now is found without an order when its namespace can be seen again.
            await self._actor.remove(run)
        if self._gateway is not None:
            await self._gateway.release(run)
        self._ledger.drop(allocation)
        self._tracker.forget(run)

    async def observe(self, allocation: str) -> AllocationObserved | None:
        run = self._tracker.runs.get(allocation)
        if run is None or (run.is_remembered and run.unseen) or (run.is_fragment and run.job is None):
            return None  # what was told of it before is all that is known
        return observation(run, self._tracker.view())

    async def capacity(self) -> PoolCapacity:
        return await self._holdings.capacity()

    async def changes(self) -> AsyncGenerator[str, None]:
        while True:
            yield await self._tracker.next_hint()


class Reactions:
    """Does what follows from what is seen, each run's by itself, again and again until it is done or not needed."""

    def __init__(self, actor: Actor, tracker: Tracker, background: Background) -> None:
        self._actor = actor
        self._tracker = tracker
        self._background = background
        self._busy: set[str] = set()
        self._acts: Mapping[Reaction, Callable[[Run], Awaitable[None]]] = {
            Reaction.END: actor.end_rest,
            Reaction.CULL: actor.cull,
            Reaction.SETTLE: actor.settle,
            Reaction.STOP: actor.send_stop,
        }

    def react(self, run: Run, what: Reaction) -> None:
        """``what`` is what ``verdicts.reaction`` says of the run."""
        if run.allocation not in self._busy:
            self._busy.add(run.allocation)
            self._background.create_task(self._do(run, what), name=f"{what.value} {run.allocation}")

    async def _do(self, run: Run, what: Reaction) -> None:
        try:
            await self._until_done(run, what)
        finally:
            self._busy.discard(run.allocation)
        if self._tracker.runs.get(run.allocation) is run:
            self._tracker.look(run)

    async def _until_done(self, run: Run, what: Reaction) -> None:
        while reaction(run, self._tracker.view()) is what:
            try:
                await self._acts[what](run)
            except (Refused, Unavailable) as error:
                log.warning("kubernetes.put_off", what=what.value, allocation=run.allocation, error=str(error))
            except Exception:
                # A bug of ours with this run must not end all others.
                log.exception("kubernetes.failed", what=what.value, allocation=run.allocation)
            else:
                return
            await asyncio.sleep(RETRY_S)
