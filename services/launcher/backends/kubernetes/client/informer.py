"""Informers: everything that happens to a kind of object, listed once and then watched.

The server may end a watch at any time, and forgets versions (410): then the list is read again, and what is not in it
any more has been deleted meanwhile. Bookmarks keep the version fresh where little happens. Failures back off with
jitter. Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec
import structlog

from libs.errors import Unavailable
from libs.telemetry import counter
from services.launcher.backends.kubernetes.client.api import KubeApi, Refused
from services.launcher.backends.kubernetes.client.objects import (
    Bookmark,
    ListOf,
    WatchEvent,
    WatchFailure,
    WatchKind,
)

log = structlog.get_logger()

RELISTS: Final = counter("resolute_launcher_kubernetes_lists_total", "Times a kind of object was listed", "what")

PAGE: Final = 500
WATCH_S: Final = (240.0, 420.0)
"""How long a watch is asked to last: between these, so that watches do not all end at once."""
FIRST_PAUSE_S: Final = 0.2
LAST_PAUSE_S: Final = 30.0
_GONE: Final = 410


class HasMeta(Protocol):
    @property
    def metadata(self) -> Any: ...


O = TypeVar("O", bound=HasMeta)  # noqa: E741  an object
I = TypeVar("I", bound=HasMeta, contravariant=True)  # noqa: E741, PLC0105


class EventHandler(Protocol[I]):
    """What wants to know; called in the order in which things happened."""

    def on_upsert(self, item: I) -> None: ...

    def on_delete(self, item: I) -> None:
        """``item`` is the last that was seen of it."""
        ...


class Informer(Generic[O]):
    """Keeps ``items`` (by namespace and name) as the server has them, and tells the handler of every change.

    path   of the collection
    query  selectors of list and watch
    refused  told each time the server will not show it, which is tried again all the same
    order  key by which a list is told, where names are not the order that makes sense
    caches  False for what is only passed on: then ``items`` stays empty, and lists tell what was told before
    """

    def __init__(
        self,
        api: KubeApi,
        *,
        what: str,
        path: str,
        kind: type[O],
        handler: EventHandler[O],
        query: Mapping[str, str] | None = None,
        caches: bool = True,
        refused: Callable[[Refused], None] = lambda _error: None,
        order: Callable[[O], Any] = lambda _item: 0,
    ) -> None:
        self._api = api
        self.what = what
        self._path = path
        self._query = dict(query or {})
        self._caches = caches
        self._refused = refused
        self._order = order
        self._pause_s = FIRST_PAUSE_S
        self._handler = handler
        # The names of types are made at run time here, which a type checker cannot follow.
        self._list: msgspec.json.Decoder[ListOf[O]] = msgspec.json.Decoder(ListOf[kind])  # type: ignore[valid-type]
        self._event: msgspec.json.Decoder[WatchEvent[O]] = msgspec.json.Decoder(WatchEvent[kind])  # type: ignore[valid-type]
        self._kind: msgspec.json.Decoder[WatchKind] = msgspec.json.Decoder(WatchKind)
        self._version = ""
        self.items: dict[tuple[str, str], O] = {}
        self.synced = asyncio.Event()
        """The list was read at least once."""

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            try:
                if not self._version:
                    await self.read_list()
                await self._watch()
            except Refused as error:
                if error.code == _GONE:
                    log.info("kubernetes.watch_outdated", what=self.what)
                else:
                    log.error("kubernetes.watch_refused", what=self.what, path=self._path, error=str(error))
                    self._refused(error)
                self._version = ""
                await self._back_off()
            except Unavailable as error:
                log.warning("kubernetes.watch_lost", what=self.what, error=str(error))
                await self._back_off()

    async def read_list(self) -> None:
        """Read everything, page by page, and tell of what has changed since then. Raises Refused and Unavailable."""
        RELISTS.labels(self.what).inc()
        version, found = "", list[O]()
        query = {**self._query, "limit": str(PAGE)}
        while True:
            page = self._list.decode(await self._api.request("GET", self._path, query=query))
            found += page.items or ()
            version = page.metadata.resource_version
            if not page.metadata.continue_:
                break
            query["continue"] = page.metadata.continue_
        for item in sorted(found, key=self._order):
            self._upsert(item)
        for name in self.items.keys() - {self._key(item) for item in found}:
            self._delete(self.items[name])
        self._version = version
        self.synced.set()

    async def _watch(self) -> None:
        query = {**self._query, "resourceVersion": self._version, "allowWatchBookmarks": "true"}
        async with self._api.watch(self._path, query, timeout_s=random.uniform(*WATCH_S)) as lines:  # noqa: S311
            async for line in lines:
                self._on_line(line)
                self._pause_s = FIRST_PAUSE_S
        # Some proxies end every watch at once.
        await asyncio.sleep(random.uniform(0.0, 0.1))  # noqa: S311

    def _on_line(self, line: bytes) -> None:
        try:
            self._on_event(line)
        except msgspec.DecodeError as error:
            # A line that was torn, or an object that is not as documented: the list tells what it was about.
            raise Unavailable(f"a watch sent what cannot be read: {error}") from error

    def _on_event(self, line: bytes) -> None:
        kind = self._kind.decode(line).type
        if kind == "BOOKMARK":
            self._version = msgspec.json.decode(line, type=Bookmark).object.metadata.resource_version
        elif kind == "ERROR":
            status = msgspec.json.decode(line, type=WatchFailure).object
            raise Refused(status.code, status.reason, status.message)
        else:
            event = self._event.decode(line)
            self._version = event.object.metadata.resource_version
            if kind == "DELETED":
                self._delete(event.object)
            else:
                self._upsert(event.object)

    def _upsert(self, item: O) -> None:
        if not self._caches:
            self._handler.on_upsert(item)
            return
        key = self._key(item)
        before = self.items.get(key)
        if before is not None and before.metadata.uid != item.metadata.uid:
            self._delete(before)  # deleted and made again while nobody looked
        elif before is not None and before.metadata.resource_version == item.metadata.resource_version:
            return
        self.items[key] = item
        self._handler.on_upsert(item)

    def _delete(self, item: O) -> None:
        if self.items.pop(self._key(item), None) is not None:
            self._handler.on_delete(item)

    def _key(self, item: O) -> tuple[str, str]:
        return item.metadata.namespace, item.metadata.name

    async def _back_off(self) -> None:
        await asyncio.sleep(self._pause_s * random.uniform(0.5, 1.5))  # noqa: S311
        self._pause_s = min(self._pause_s * 2, LAST_PAUSE_S)
