"""Which allocations have existed: kept in a ConfigMap of the launcher, apart from what may be deleted with a Job.

An order that says run, and nothing there: either it was never begun, or somebody deleted it while no launcher was
looking. What is in the ledger was begun, and is not begun again. Entries are written some time after a Job was made,
all that came together at once, so a launcher that is killed in between may begin a deleted Job anew.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Final

import structlog
from msgspec import Struct

from libs.errors import Unavailable
from services.launcher.backends.kubernetes.api import KubeApi, Refused
from services.launcher.backends.kubernetes.paths import Paths
from services.launcher.backends.kubernetes.spec.label_values import label_value
from services.launcher.backends.kubernetes.spec.names import (
    CLUSTER_LABEL,
    LAUNCHER_LABEL,
    PURPOSE_LABEL,
    launcher_id,
    system_name,
)

log = structlog.get_logger()

GATHER_S: Final = 0.5
RETRY_S: Final = 5.0
_NOT_FOUND: Final = 404
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}")


class _Written(Struct, frozen=True):
    data: dict[str, str] | None = None


class Ledger:
    """Problems are logged and tried again; without a ledger everything else works."""

    def __init__(self, api: KubeApi, *, paths: Paths, pool: str, cluster_id: str) -> None:
        self._api = api
        self._name = system_name(cluster_id, pool, "ledger")
        self._path = f"{paths.config_maps}/{self._name}"
        self._collection = paths.config_maps
        self._labels = {
            PURPOSE_LABEL: "ledger",
            CLUSTER_LABEL: label_value(cluster_id),
            LAUNCHER_LABEL: launcher_id(cluster_id, pool),
        }
        self._exists = False
        self._entries: set[str] = set()
        self._changes: dict[str, str | None] = {}
        self._wake = asyncio.Event()

    async def read(self) -> frozenset[str]:
        """Allocations that have existed, as the last launcher wrote them down. Raises Unavailable."""
        try:
            written = await self._api.get(self._path, _Written)
        except Refused as error:
            if error.code != _NOT_FOUND:
                log.warning("kubernetes.no_ledger", reason=str(error))
            return frozenset()
        self._exists = True
        self._entries = set(written.data or {})
        return frozenset(self._entries)

    def add(self, allocations: Iterable[str]) -> None:
        new = [each for each in allocations if each not in self._entries and _KEY.fullmatch(each)]
        self._change(new, "")

    def drop(self, allocation: str) -> None:
        if allocation in self._entries or allocation in self._changes:
            self._change([allocation], None)

    async def run(self) -> None:
        """Write down what is added and dropped, until cancelled."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(GATHER_S)
            self._wake.clear()
            changes, self._changes = self._changes, {}
            try:
                await self._write(changes)
            except (Refused, Unavailable) as error:
                log.warning("kubernetes.ledger_not_written", error=str(error), changes=len(changes))
                self._changes = {**changes, **self._changes}
                self._wake.set()
                await asyncio.sleep(RETRY_S)

    def _change(self, allocations: Iterable[str], value: str | None) -> None:
        for allocation in allocations:
            if value is None:
                self._entries.discard(allocation)
            else:
                self._entries.add(allocation)
            self._changes[allocation] = value
            self._wake.set()

    async def _write(self, changes: dict[str, str | None]) -> None:
        if self._exists:
            try:
                await self._api.patch(self._path, {"data": changes})
            except Refused as error:
                if error.code != _NOT_FOUND:
                    raise
                self._exists = False
        if not self._exists:
            metadata = {"name": self._name, "labels": self._labels}
            data = dict.fromkeys(sorted(self._entries), "")
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            await self._api.create(self._collection, body, Struct)
            self._exists = True
