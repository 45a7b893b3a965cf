"""Opens the namespaces in which a launcher works, and closes those of workspaces when their last task has gone.

A namespace is opened when the first order names it, or when a launcher before us had something in it. One that cannot
be opened refuses the orders that name it, and disturbs nobody else. What runs in a namespace that cannot be seen any
more is taken to run on, until it can be seen again; in one that was deleted, nothing runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import structlog

from libs.errors import InvalidRequest, NotFound, PermissionDenied, ResoluteError, Unavailable
from services.launcher.backends.kubernetes.allocations.launch_record import LaunchRecord
from services.launcher.backends.kubernetes.allocations.state.allocation import TrackedAllocation
from services.launcher.backends.kubernetes.allocations.state.intent import Intent
from services.launcher.backends.kubernetes.allocations.state.observed_state import ObservedState
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.background import Background
from services.launcher.backends.kubernetes.capacity.tracker import CapacityTracker
from services.launcher.backends.kubernetes.client.api import ONLY_METADATA, KubeApi, Refused
from services.launcher.backends.kubernetes.client.connection import RIGHTS, find_namespace
from services.launcher.backends.kubernetes.client.informer import PAGE
from services.launcher.backends.kubernetes.client.objects import ListOf, Named
from services.launcher.backends.kubernetes.client.paths import ALL_JOBS, ALL_PODS
from services.launcher.backends.kubernetes.manifests.names import LAUNCHER_LABEL
from services.launcher.backends.kubernetes.namespaces.informers import NamespaceInformers
from services.launcher.backends.kubernetes.namespaces.wheels import Wheels

log = structlog.get_logger()

LOOK_S: Final = 2.0
"""Time between two looks at which namespaces should be opened again, and which may be closed."""
REFUSED_S: Final = 2.0
"""How long a namespace that could not be opened is not tried again."""
_FORBIDDEN: Final = 403
_NO_ACCESS: Final = (403, 404)

MakeInformers = Callable[[str, Callable[[Refused], None]], NamespaceInformers]
"""Of a namespace; and who is to be told when it refuses us."""


class _NamespaceState:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        """Held while it is opened or closed."""
        self.informers: NamespaceInformers | None = None
        self.is_prepared = False
        """Everything that tasks need beside their own objects is there."""
        self.refusal: ResoluteError | None = None
        self.refused_until = 0.0
        self.used_at = 0.0


class Namespaces:
    """``own`` is the namespace of the pool, which is never closed.

    former  the records of namespaces that were the pool's own before: what they name must not begin anew in this one
    """

    def __init__(
        self,
        api: KubeApi,
        *,
        own: str,
        launcher: str,
        make_informers: MakeInformers,
        tracker: Tracker,
        capacity_tracker: CapacityTracker,
        launch_record: LaunchRecord,
        wheels: Wheels,
        background: Background,
        idle_s: float,
        former: Sequence[LaunchRecord] = (),
    ) -> None:
        self._api = api
        self._former = former
        self.own = own
        self._launcher = launcher
        self._make_informers = make_informers
        self._tracker = tracker
        self._capacity_tracker = capacity_tracker
        self._launch_record = launch_record
        self._wheels = wheels
        self._background = background
        self._idle_s = idle_s
        self._states: dict[str, _NamespaceState] = {}

    async def start(self) -> None:
        """Find everything that exists. Raises what ``open`` does for the pool's namespace, and Unavailable."""
        written = await self._launch_record.read()
        before = [await record.read() for record in self._former]
        allocations = {name: where for each in (*before, written) for name, where in each.allocations.items()}
        named = written.namespaces.union(*(each.namespaces for each in before))
        await self.prepare(self.own)
        there = await self._with_our(ALL_JOBS) | await self._with_our(ALL_PODS)
        formerly = {record.namespace for record in self._former}
        others = (named | set(allocations.values()) | there | formerly) - {self.own}
        async with asyncio.TaskGroup() as tasks:
            for namespace in sorted(others):
                tasks.create_task(self._try_to_open(namespace))
        for namespace in filter(self.is_open, sorted({self.own, *others})):
            await self._tidy(namespace)
        self._remember(allocations)
        whole = [tracked for tracked in self._tracker.allocations.values() if not tracked.intent.is_abandoned]
        self._launch_record.add({tracked.allocation: tracked.namespace for tracked in whole})

    async def open(self, namespace: str) -> None:
        """See to it that everything of ours in a namespace is known, and followed.

        Raises NotFound, PermissionDenied, InvalidRequest, Refused and Unavailable.
        """
        state = self._state_of(namespace)
        async with state.lock:
            if state.informers is None:
                await self._open(namespace, state)

    def is_open(self, namespace: str) -> bool:
        state = self._states.get(namespace)
        return state is not None and state.informers is not None

    async def prepare(self, namespace: str) -> None:
        """Open a namespace, and have in it what tasks need. To be awaited before anything is made in it.

        Raises what ``open`` does.
        """
        state = self._state_of(namespace)
        async with state.lock:
            if state.informers is None:
                await self._open(namespace, state)
            if not state.is_prepared:
                await self._wheels.publish(namespace)
                await self._launch_record.note_namespace(namespace)
                state.is_prepared = True

    async def run(self) -> None:
        """Open again what could not be seen, and close what is not used any more, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            used = self._tracker.used_namespaces()
            for namespace, state in self._states.items():
                if state.lock.locked():
                    continue
                if namespace in used:
                    state.used_at = self._now()
                else:
                    state.is_prepared = False  # it may be deleted and made again without our noticing
                if self._is_to_reopen(namespace, state):
                    self._background.create_task(self._try_to_open(namespace), name=f"open {namespace}")
                elif self._is_idle(namespace, state):
                    self._background.create_task(self._close_if_idle(namespace, state), name=f"close {namespace}")

    def _state_of(self, namespace: str) -> _NamespaceState:
        state = self._states.setdefault(namespace, _NamespaceState())
        state.used_at = self._now()
        return state

    async def _open(self, namespace: str, state: _NamespaceState) -> None:
        if state.refusal is not None and self._now() < state.refused_until:
            raise state.refusal.with_traceback(None)
        informers = self._make_informers(namespace, lambda error: self._refused(namespace, error))
        try:
            await find_namespace(self._api, namespace)
            await self._read(namespace, informers)
        except (NotFound, PermissionDenied, InvalidRequest, Refused, Unavailable) as error:
            log.warning("kubernetes.namespace_not_opened", namespace=namespace, reason=str(error))
            state.refusal, state.refused_until = error, self._now() + REFUSED_S
            self._note_failure(namespace, error)
            raise
        state.refusal = None
        state.informers = informers
        log.info("kubernetes.namespace_opened", namespace=namespace)

    async def _read(self, namespace: str, informers: NamespaceInformers) -> None:
        try:
            await informers.open()
        except Refused as error:
            if error.code != _FORBIDDEN:
                raise
            raise PermissionDenied(f"the launcher may not work in namespace {namespace}: {error}. {RIGHTS}") from error

    def _note_failure(self, namespace: str, error: ResoluteError) -> None:
        if isinstance(error, NotFound):
            self._tracker.lose_all(namespace, _deleted(namespace))
        else:
            self._tracker.lose_sight(namespace, _unseen(namespace, error))

    async def _try_to_open(self, namespace: str) -> None:
        try:
            await self.open(namespace)
        except (NotFound, PermissionDenied, InvalidRequest, Refused, Unavailable):
            return  # noted, logged, and tried again as long as anything may be there

    async def _tidy(self, namespace: str) -> None:
        try:
            await self._wheels.tidy(namespace)
        except (Refused, Unavailable) as error:
            log.warning("kubernetes.namespace_cleanup_failed", namespace=namespace, error=str(error))

    def _refused(self, namespace: str, error: Refused) -> None:
        """A watch was refused: because of the namespace, or because of our rights in it."""
        if error.code in _NO_ACCESS:
            self._background.create_task(self._examine(namespace, error), name=f"examine {namespace}")

    async def _examine(self, namespace: str, refusal: Refused) -> None:
        state = self._state_of(namespace)
        async with state.lock:
            if state.informers is None:
                return
            reason: ResoluteError = refusal
            try:
                await find_namespace(self._api, namespace)
            except (NotFound, PermissionDenied) as error:
                reason = error
            except (Refused, Unavailable):
                return  # the watch asks again, and so do we
            await self._let_go(namespace, state)
            log.warning("kubernetes.namespace_lost", namespace=namespace, reason=str(reason))
            self._note_failure(namespace, reason)

    def _is_to_reopen(self, namespace: str, state: _NamespaceState) -> bool:
        if state.informers is not None or self._now() < state.refused_until:
            return False
        there = self._tracker.allocations_in(namespace)
        return namespace == self.own or any(tracked.observed.out_of_sight for tracked in there)

    def _is_idle(self, namespace: str, state: _NamespaceState) -> bool:
        return namespace != self.own and state.informers is not None and self._now() > state.used_at + self._idle_s

    async def _close_if_idle(self, namespace: str, state: _NamespaceState) -> None:
        async with state.lock:
            if self._tracker.allocations_in(namespace) or not self._is_idle(namespace, state):
                return
            await self._let_go(namespace, state)
            try:
                await self._wheels.withdraw(namespace)
                await self._launch_record.drop_namespace(namespace)
            except (Refused, Unavailable) as error:
                log.warning("kubernetes.namespace_cleanup_failed", namespace=namespace, error=str(error))
            log.info("kubernetes.namespace_closed", namespace=namespace)

    async def _let_go(self, namespace: str, state: _NamespaceState) -> None:
        informers, state.informers = state.informers, None
        state.is_prepared = False
        if informers is not None:
            await informers.close()
        self._capacity_tracker.forget_namespace(namespace)

    async def _with_our(self, collection: str) -> set[str]:
        """Namespaces with objects of ours; none where the whole cluster may not be looked at. Raises Unavailable."""
        found: set[str] = set()
        query = {"labelSelector": f"{LAUNCHER_LABEL}={self._launcher}", "limit": str(PAGE)}
        while True:
            try:
                page = await self._api.get(collection, ListOf[Named], query, accept=ONLY_METADATA)
            except Refused as error:
                log.info("kubernetes.list_forbidden", what=collection, reason=str(error))
                return found
            found |= {item.metadata.namespace for item in page.items or ()}
            if not page.metadata.continue_:
                return found
            query["continue"] = page.metadata.continue_

    def _remember(self, namespaces: Mapping[str, str]) -> None:
        """Take in allocations that have existed, of which nothing was found: they must not begin anew.

        They were stopped, or somebody deleted them, unless their namespace cannot be seen.
        """
        for allocation, namespace in namespaces.items():
            if allocation in self._tracker.allocations:
                continue
            refusal = self._state_of(namespace).refusal
            is_gone = isinstance(refusal, NotFound)
            observed = ObservedState(
                num_pods=1,
                gone_because=_deleted(namespace) if is_gone else "",
                out_of_sight=_unseen(namespace, refusal) if refusal is not None and not is_gone else "",
            )
            tracked = TrackedAllocation(
                allocation=allocation,
                task="",
                pool=self._tracker.pool,
                job_name=f"of {allocation}",
                namespace=namespace,
                slots_per_pod=0,
                observed=observed,
                intent=Intent(stage="abandoned"),
                view=self._tracker.view(),
                is_remembered=True,
            )
            self._tracker.add(tracked)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _deleted(namespace: str) -> str:
    return f"namespace {namespace} was deleted"


def _unseen(namespace: str, error: ResoluteError) -> str:
    return f"nobody can see what is in namespace {namespace}: {error}"
