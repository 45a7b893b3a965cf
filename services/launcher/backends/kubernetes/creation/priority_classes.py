"""Priority classes that the cluster has; those that are missing are made where that is allowed.

They belong to the cluster rather than to a namespace. A launcher that may not even look uses none, because a pod with
a class that does not exist is never made. One that somebody deletes while a launcher knows it is made again as soon as
the cluster misses it: pods that were refused meanwhile are tried again. Source: docs/reference/kubernetes.md 3.10.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Literal

import structlog

from libs.errors import Unavailable
from libs.events.orders import TaskSpec
from libs.waiting import wait_until_set
from services.launcher.backends.kubernetes.client.api import KubeApi, Refused
from services.launcher.backends.kubernetes.client.objects import ListOf, Named
from services.launcher.backends.kubernetes.client.paths import PRIORITY_CLASSES
from services.launcher.backends.kubernetes.manifests.priority import (
    DEFAULT,
    PLACEHOLDER,
    class_name,
    placeholder_class,
    preferred_classes,
    priority_class,
    priority_of,
)

log = structlog.get_logger()

LOOK_S: Final = 300.0
"""Time between two lists."""
PAUSE_S: Final = 60.0
"""Shortest time between two lists, whatever is missing."""
_EXISTS: Final = 409


class PriorityClasses:
    def __init__(self, api: KubeApi, *, mode: Literal["auto", "assume", "off"]) -> None:
        self._api = api
        self._mode = mode
        self._known: set[str] | None = None
        self._refused: set[str] = set()
        self._missing: set[str] = set()
        """Classes of ours that were there, and that pods wait for."""
        self._wake = asyncio.Event()

    def missing(self, name: str) -> None:
        """The cluster has refused a pod because it has no class of this name; if we knew it, somebody deleted it."""
        if self._known is None or name not in self._known:
            return
        log.warning("kubernetes.priority_class_missing", name=name)
        self._known.discard(name)
        if priority_of(name) is not None:
            self._missing.add(name)
        self._wake.set()

    async def run(self) -> None:
        """Look again now and then, and as soon as one is missing, until cancelled."""
        while True:
            await wait_until_set(self._wake, timeout_s=LOOK_S)
            self._wake.clear()
            try:
                await self.look_again()
            except Unavailable as error:
                log.warning("kubernetes.priority_classes_not_listed", error=str(error))
            if self._missing:
                self._wake.set()
            await asyncio.sleep(PAUSE_S)

    async def look_again(self) -> None:
        """Find out what there is now, and make those again that pods wait for. Raises Unavailable."""
        await self.look()
        for name in sorted(self._missing):
            priority = priority_of(name)
            if priority is not None and self._known is not None and name not in self._known:
                await self._make(name, priority)
        self._missing -= self._refused | (self._known or set())

    async def look(self) -> None:
        """Find out what there is. Raises Unavailable."""
        if self._mode != "auto":
            return
        try:
            found = await self._api.get(PRIORITY_CLASSES, ListOf[Named])
        except Refused as error:
            log.info("kubernetes.no_priority_classes", reason=str(error))
            return
        self._known = {item.metadata.name for item in found.items or ()}
        self._refused.clear()

    async def of(self, spec: TaskSpec) -> str | None:
        """The class for the pods of a task, or None for pods without one. Raises Unavailable."""
        names = preferred_classes(spec)
        if self._mode == "assume":
            return names[0]
        if self._mode == "off" or self._known is None:
            return None
        wanted = class_name(spec.priority or DEFAULT)
        if names[0] == wanted and wanted not in self._known | self._refused:
            await self._make(wanted, spec.priority or DEFAULT)
        return next((name for name in names if name in self._known), None)

    async def of_placeholders(self, configured: str) -> str | None:
        """The class of placeholders, or None for pods without one. Raises Unavailable.

        configured  its name where the configuration has one, which then has to exist
        """
        if configured or self._mode == "assume":
            return configured or PLACEHOLDER
        if self._mode == "off" or self._known is None:
            return None
        if PLACEHOLDER not in self._known | self._refused:
            await self._create(PLACEHOLDER, placeholder_class())
        return PLACEHOLDER if PLACEHOLDER in self._known else None

    async def _make(self, name: str, priority: int) -> None:
        await self._create(name, priority_class(priority))

    async def _create(self, name: str, manifest: dict[str, Any]) -> None:
        assert self._known is not None
        try:
            await self._api.create(PRIORITY_CLASSES, manifest, Named)
        except Refused as error:
            if error.code != _EXISTS:
                log.info("kubernetes.priority_class_refused", name=name, reason=str(error))
                self._refused.add(name)
                return
        except Unavailable as error:
            log.warning("kubernetes.priority_class_not_made", name=name, error=str(error))
            return
        self._known.add(name)
