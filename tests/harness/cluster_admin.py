"""Fake launcher for cluster administration, whose cluster is a few dictionaries."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import msgspec

from libs.bus import Bus, BusSettings, CoreMessage, connect_bus
from libs.errors import FailedPrecondition, NotFound, PermissionDenied, ResoluteError
from libs.events import cluster_admin, subjects
from libs.events.cluster_admin import ClusterNamespaceRequest, Done, NodeMarkRequest, Quota, SlotQuotaRequest

T = TypeVar("T")


class FakeClusterAdmin:
    """Serves the questions of ``libs/events/cluster_admin.py`` for one pool, as a launcher on Kubernetes does."""

    def __init__(self, pool: str = "default") -> None:
        self.pool = pool
        self.namespaces: dict[str, bool] = {"default": False}
        """Name -> whether it is ours."""
        self.quotas: dict[str, float] = {}
        self.other_quotas: dict[str, float] = {}
        """Those that somebody else has set."""
        self.marks: dict[str, str] = {}
        self.asked: list[tuple[str, Any]] = []
        self.refuses: dict[str, ResoluteError] = {}
        """Verb -> what it is answered with instead."""
        self.on_asked: Callable[[], None] | None = None
        """Called, in a thread, before anything is answered."""

    @asynccontextmanager
    async def serving(self, bus: Bus) -> AsyncIterator[FakeClusterAdmin]:
        async with bus.serve(subjects.launcher_rpcs(self.pool), self._answer):
            yield self

    async def _answer(self, message: CoreMessage) -> bytes:
        verb = message.subject.rpartition(".")[2]
        if self.on_asked is not None:
            await asyncio.to_thread(self.on_asked)
        return msgspec.json.encode(self._carry_out(verb, message.data))

    def _carry_out(self, verb: str, data: bytes) -> Done | Quota:  # a table of answers
        match verb:
            case cluster_admin.FIND_NAMESPACE:
                self._find(self._read(verb, data, ClusterNamespaceRequest).namespace)
                return Done()
            case cluster_admin.CREATE_NAMESPACE:
                self.namespaces.setdefault(self._read(verb, data, ClusterNamespaceRequest).namespace, True)
                return Done()
            case cluster_admin.DELETE_NAMESPACE:
                namespace = self._read(verb, data, ClusterNamespaceRequest).namespace
                if not self.namespaces.get(namespace, True):
                    raise FailedPrecondition(f"namespace {namespace} has no label determined")
                self.namespaces.pop(namespace, None)
                return Done()
            case cluster_admin.GET_QUOTA:
                namespace = self._read(verb, data, ClusterNamespaceRequest).namespace
                limits = [quotas[namespace] for quotas in (self.quotas, self.other_quotas) if namespace in quotas]
                return Quota(slots=min(limits, default=None))
            case cluster_admin.SET_QUOTA:
                self._set_quota(self._read(verb, data, SlotQuotaRequest))
                return Done()
            case cluster_admin.MARK_NODE:
                asked = self._read(verb, data, NodeMarkRequest)
                self.marks[asked.node] = asked.mark
                return Done()
        raise PermissionDenied(f"nobody may ask to {verb}")

    def _read(self, verb: str, data: bytes, kind: type[T]) -> T:
        asked = msgspec.json.decode(data, type=kind)
        self.asked.append((verb, asked))
        if verb in self.refuses:
            raise self.refuses[verb]
        return asked

    def _find(self, namespace: str) -> None:
        if namespace not in self.namespaces:
            raise NotFound("namespace", namespace)

    def _set_quota(self, asked: SlotQuotaRequest) -> None:
        self._find(asked.namespace)
        if not self.namespaces[asked.namespace]:
            text = f"cannot set quota on namespace {asked.namespace}. Namespace needs determined label"
            raise FailedPrecondition(text)
        if self.other_quotas.get(asked.namespace, asked.slots) < asked.slots:
            raise FailedPrecondition("a quota is lower than the request limit you wish to set on this namespace")
        self.quotas[asked.namespace] = asked.slots


class ClusterAdminThread:
    """FakeClusterAdmin beside tests that have no event loop."""

    def __init__(self, cluster_admin: FakeClusterAdmin, bus_url: str) -> None:
        self.cluster_admin = cluster_admin
        self._bus_url = bus_url
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._serving = AsyncExitStack()

    def come(self) -> None:
        """Answer from here on."""
        self._run(self._come())

    def leave(self) -> None:
        """Be away: nobody answers."""
        self._run(self._serving.aclose())

    async def _come(self) -> None:
        bus = await self._serving.enter_async_context(connect_bus(BusSettings(url=self._bus_url, name="launcher")))
        await self._serving.enter_async_context(self.cluster_admin.serving(bus))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)

    def __enter__(self) -> FakeClusterAdmin:
        self._thread.start()
        self.come()
        return self.cluster_admin

    def __exit__(self, *_: object) -> None:
        self.leave()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=30)
        self._loop.close()
