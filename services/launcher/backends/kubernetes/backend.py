"""The Kubernetes backend: what namespaces say, told to the loop, and what the loop wants, done in them.

Nothing is kept here that could not be read again from the cluster: a launcher that was killed finds its Jobs by their
label, and how they ended in their pods or, where those are gone, in an annotation.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

import structlog

from libs.clock import Clock
from libs.errors import InvalidRequest, NotFound, PermissionDenied, Unavailable
from libs.events.capacity import PoolCapacity
from libs.events.observations import AllocationObserved
from libs.events.orders import Order, PlaceholderOrder
from services.launcher.backends.kubernetes.allocations.launch_record import LaunchRecord
from services.launcher.backends.kubernetes.allocations.state.allocation import TrackedAllocation
from services.launcher.backends.kubernetes.allocations.state.intent import Intent
from services.launcher.backends.kubernetes.allocations.state.observation import observation
from services.launcher.backends.kubernetes.allocations.state.observed_state import ObservedState
from services.launcher.backends.kubernetes.allocations.teardown import Teardown
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.capacity.slots import takes_pods
from services.launcher.backends.kubernetes.capacity.tracker import CapacityTracker
from services.launcher.backends.kubernetes.creation.creation import Creation
from services.launcher.backends.kubernetes.gateway.task_gateway import TaskGateway
from services.launcher.backends.kubernetes.manifests.job_parts import job_parts
from services.launcher.backends.kubernetes.namespaces.lifecycle import Namespaces
from services.launcher.backends.kubernetes.placeholders.holding import Placeholders
from services.launcher.cluster_admin import ClusterAdmin
from services.launcher.reconcile import Existence

log = structlog.get_logger()


class KubernetesBackend:
    """See ``backends/protocol.py`` for what the methods promise."""

    def __init__(
        self,
        *,
        cluster_id: str,
        tracker: Tracker,
        creation: Creation,
        teardown: Teardown,
        namespaces: Namespaces,
        capacity_tracker: CapacityTracker,
        launch_record: LaunchRecord,
        cluster_admin: ClusterAdmin,
        clock: Clock,
        placeholders: Placeholders,
        gateway: TaskGateway | None = None,
    ) -> None:
        self._cluster_id = cluster_id
        self._tracker = tracker
        self._creation = creation
        self._teardown = teardown
        self._namespaces = namespaces
        self._capacity_tracker = capacity_tracker
        self._launch_record = launch_record
        self.cluster_admin = cluster_admin
        self._clock = clock
        self._placeholders = placeholders
        self._gateway = gateway

    async def existing(self) -> Mapping[str, Existence]:
        return self._tracker.existing

    async def seek(self, order: Order) -> bool:
        if order.allocation not in self._tracker.allocations:
            try:
                await self._namespaces.open(order.namespace or self._namespaces.own)
            except (NotFound, PermissionDenied, InvalidRequest) as error:
                # Where nobody can look there is nobody who could end anything either.
                log.info("kubernetes.namespace_not_searched", allocation=order.allocation, reason=str(error))
        return order.allocation in self._tracker.allocations

    async def start(self, order: Order) -> None:
        known = self._tracker.allocations.get(order.allocation)
        if known is not None:
            if known.intent.is_abandoned:
                self._go_on(known, order)
            return
        spec = order.spec
        parts = job_parts(spec, order.allocation, self._cluster_id) if spec is not None else ()
        name = parts[0].name if parts else order.allocation
        tracked = TrackedAllocation(
            allocation=order.allocation,
            task=spec.task if spec is not None else "",
            pool=self._tracker.pool,
            job_name=name,
            namespace=order.namespace or self._namespaces.own,
            slots_per_pod=spec.slots_per_pod if spec is not None else 0,
            observed=ObservedState(
                num_pods=spec.num_pods if spec is not None else 1,
                job_names=tuple(part.name for part in parts) if len(parts) > 1 else (),
            ),
            intent=Intent(stage="queued"),
            view=self._tracker.view(),
            parts=parts,
        )
        if spec is None:
            tracked.intent.refuse("the order says run, but not what")
        if not self._tracker.add(tracked):
            raise Unavailable(f"the Job {name} of another allocation is still there")
        if spec is not None:
            self._creation.put(tracked, order)

    def _go_on(self, tracked: TrackedAllocation, order: Order) -> None:
        if tracked.observed.job is not None:
            tracked.intent.begin_creation()  # and never only queued: what there is of it has to be ended, if anything
            self._creation.put(tracked, order)
        elif not tracked.observed.pods:
            tracked.intent.end_creation()  # and deleted by somebody
        self._tracker.look(tracked)

    async def stop(self, allocation: str, *, grace_s: float, ordered: bool) -> None:
        tracked = self._tracker.allocations.get(allocation)
        if tracked is None or tracked.intent.refusal is not None:
            return
        if tracked.intent.is_abandoned:
            tracked.intent.end_creation()  # as far as it ever will be
        tracked.request_stop(ordered=ordered, deadline=self._clock.now().timestamp() + grace_s)
        if tracked.intent.stage == "queued":
            tracked.intent.refuse("", withdrawn=True)
        self._tracker.look(tracked)  # and react to it

    async def remove(self, allocation: str) -> None:
        tracked = self._tracker.allocations.get(allocation)
        if tracked is None or self._tracker.existing.get(allocation) is not Existence.ENDED:
            return
        if (tracked.observed.job is not None or tracked.observed.pods) and self._namespaces.is_open(tracked.namespace):
            # What cannot be removed now is found without an order when its namespace can be seen again.
            await self._teardown.remove(tracked)
        if self._gateway is not None:
            await self._gateway.release(tracked)
        self._launch_record.drop(allocation)
        self._tracker.forget(tracked)

    async def observe(self, allocation: str) -> AllocationObserved | None:
        tracked = self._tracker.allocations.get(allocation)
        if (
            tracked is None
            or (tracked.is_remembered and tracked.observed.out_of_sight)
            or (tracked.intent.is_abandoned and tracked.observed.job is None)
        ):
            return None  # what was told of it before is all that is known
        return observation(tracked, takes_pods=self._takes_pods)

    def _takes_pods(self, name: str) -> bool:
        nodes = self._tracker.nodes
        if nodes is None:
            return True  # nobody can know
        node = nodes.get(name)
        return node is not None and takes_pods(node, self._cluster_id)

    async def hold_room(self, order: PlaceholderOrder | None) -> None:
        await self._placeholders.hold(order)

    async def capacity(self) -> PoolCapacity:
        return await self._capacity_tracker.capacity()

    async def changes(self) -> AsyncGenerator[str, None]:
        while True:
            yield await self._tracker.next_notification()
