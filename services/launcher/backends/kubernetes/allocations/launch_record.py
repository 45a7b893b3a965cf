"""Record of the allocations that were launched, and where: kept in a ConfigMap, apart from what may go with a Job.

An order that says run, and nothing there: either it was never begun, or somebody deleted it while no launcher was
looking. What is recorded was begun, and is not begun again. Entries are written some time after a Job was made,
all that came together at once, so a launcher that is killed in between may begin a deleted Job anew. Namespaces are
written down before anything is made in them, so that a launcher which may not list the Jobs of the whole cluster
finds everything again too.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Final

import structlog
from msgspec import Struct, field

from libs.errors import Unavailable
from services.launcher.backends.kubernetes.client.api import KubeApi, Refused
from services.launcher.backends.kubernetes.client.paths import paths_in
from services.launcher.backends.kubernetes.manifests.label_values import label_value
from services.launcher.backends.kubernetes.manifests.names import (
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
_NAMESPACE: Final = "namespaces.resolute/"
"""How annotations begin that name a namespace."""

Changes = dict[str, str | None]


class Written(Struct, frozen=True, kw_only=True):
    """What the last launcher wrote down."""

    allocations: Mapping[str, str]
    """Allocations that have existed, with their namespaces."""
    namespaces: frozenset[str]
    """Others than that of the pool, in which there may be something."""


class _Metadata(Struct, frozen=True):
    annotations: dict[str, str] = {}


class _ConfigMap(Struct, frozen=True):
    metadata: _Metadata = field(default_factory=_Metadata)
    data: dict[str, str] | None = None


class LaunchRecord:
    """Problems are logged and tried again; without a record everything else works."""

    def __init__(self, api: KubeApi, *, namespace: str, pool: str, cluster_id: str) -> None:
        self._api = api
        self.namespace = namespace
        self._name = system_name(cluster_id, pool, "launch-record")
        self._path = paths_in(namespace).config_map(self._name)
        self._labels = {
            PURPOSE_LABEL: "launch-record",
            CLUSTER_LABEL: label_value(cluster_id),
            LAUNCHER_LABEL: launcher_id(cluster_id, pool),
        }
        self._exists = False
        self._entries: dict[str, str] = {}
        """By allocation: its namespace, or nothing for that of the pool."""
        self._namespaces: set[str] = set()
        self._changes: Changes = {}
        self._wake = asyncio.Event()
        self._writing = asyncio.Lock()

    async def read(self) -> Written:
        """Raises Unavailable."""
        try:
            written = await self._api.get(self._path, _ConfigMap)
        except Refused as error:
            if error.code != _NOT_FOUND:
                log.warning("kubernetes.launch_record_unreadable", reason=str(error))
            return Written(allocations={}, namespaces=frozenset())
        self._exists = True
        self._entries = dict(written.data or {})
        annotations = written.metadata.annotations
        self._namespaces = {name.removeprefix(_NAMESPACE) for name in annotations if name.startswith(_NAMESPACE)}
        allocations = {allocation: where or self.namespace for allocation, where in self._entries.items()}
        return Written(allocations=allocations, namespaces=frozenset(self._namespaces))

    def add(self, namespaces: Mapping[str, str]) -> None:
        """``namespaces`` are those of new allocations."""
        for allocation, namespace in namespaces.items():
            where = "" if namespace == self.namespace else namespace
            if self._entries.get(allocation) != where and _KEY.fullmatch(allocation):
                self._entries[allocation] = where
                self._change(allocation, where)

    def drop(self, allocation: str) -> None:
        if self._entries.pop(allocation, None) is not None or allocation in self._changes:
            self._change(allocation, None)

    async def note_namespace(self, namespace: str) -> None:
        """To be awaited before something is made in a namespace. Raises Unavailable."""
        if namespace != self.namespace and namespace not in self._namespaces:
            await self._write_namespace(namespace, "")
            self._namespaces.add(namespace)

    async def drop_namespace(self, namespace: str) -> None:
        """Nothing of ours is left in a namespace. Raises Unavailable."""
        if namespace in self._namespaces:
            self._namespaces.discard(namespace)
            await self._write_namespace(namespace, None)

    async def run(self) -> None:
        """Write down what is added and dropped, until cancelled."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(GATHER_S)
            self._wake.clear()
            changes, self._changes = self._changes, {}
            try:
                await self._write(changes, {})
            except (Refused, Unavailable) as error:
                log.warning("kubernetes.launch_record_not_written", error=str(error), changes=len(changes))
                self._changes = {**changes, **self._changes}
                self._wake.set()
                await asyncio.sleep(RETRY_S)

    def _change(self, allocation: str, value: str | None) -> None:
        self._changes[allocation] = value
        self._wake.set()

    async def _write_namespace(self, namespace: str, value: str | None) -> None:
        try:
            await self._write({}, {f"{_NAMESPACE}{namespace}": value})
        except Refused as error:
            log.warning("kubernetes.launch_record_not_written", error=str(error), namespace=namespace)

    async def _write(self, changes: Changes, annotations: Changes) -> None:
        async with self._writing:
            if self._exists:
                try:
                    await self._api.patch(self._path, {"data": changes, "metadata": {"annotations": annotations}})
                except Refused as error:
                    if error.code != _NOT_FOUND:
                        raise
                    self._exists = False
            if not self._exists:
                await self._create(annotations)

    async def _create(self, annotations: Changes) -> None:
        """Write down everything there is to know."""
        known = {f"{_NAMESPACE}{namespace}": "" for namespace in sorted(self._namespaces)}
        metadata = {
            "name": self._name,
            "labels": self._labels,
            "annotations": {name: value for name, value in {**known, **annotations}.items() if value is not None},
        }
        data = dict(sorted(self._entries.items()))
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        await self._api.create(paths_in(self.namespace).config_maps, body, Struct)
        self._exists = True
