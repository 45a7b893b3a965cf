"""The wheels that tasks install, in one ConfigMap that all pods of the pool mount.

In the ConfigMap of every task they would leave little room for anything else, and cost three quarters of a megabyte
each time. The name says what is in it, so pods of before an upgrade keep what they have; when the last of them is gone,
the next launcher that begins removes it.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any, Final

import structlog

from libs.errors import InvalidRequest
from services.launcher.backends.kubernetes.client.api import ONLY_METADATA, KubeApi, Refused
from services.launcher.backends.kubernetes.client.informer import PAGE
from services.launcher.backends.kubernetes.client.objects import JobVolumes, ListOf, Named
from services.launcher.backends.kubernetes.client.paths import paths_in
from services.launcher.backends.kubernetes.manifests.files.archives import MAX_OBJECT_BYTES
from services.launcher.backends.kubernetes.manifests.label_values import label_value
from services.launcher.backends.kubernetes.manifests.names import (
    CLUSTER_LABEL,
    LAUNCHER_LABEL,
    PURPOSE_LABEL,
    launcher_id,
    system_name,
)

log = structlog.get_logger()

_EXISTS: Final = 409


def read_wheels(directory: str) -> dict[str, bytes]:
    """Content of the wheels in a directory, by file name. Raises InvalidRequest."""
    path = Path(directory)
    if not path.is_dir():
        raise InvalidRequest(f"kubernetes.wheels_dir {directory} is not a directory")
    wheels = {wheel.name: wheel.read_bytes() for wheel in sorted(path.glob("*.whl"))}
    if sum(map(len, wheels.values())) > MAX_OBJECT_BYTES:
        raise InvalidRequest(
            f"the wheels in kubernetes.wheels_dir {directory} are larger than the 1 MiB that Kubernetes allows: "
            "leave the one of the client only, or use images that have it"
        )
    return wheels


class Wheels:
    """The same for all namespaces of a pool. Raises InvalidRequest for a directory that cannot be used."""

    def __init__(self, api: KubeApi, *, directory: str | None, pool: str, cluster_id: str) -> None:
        self._api = api
        wheels = read_wheels(directory) if directory is not None else {}
        digest = hashlib.sha256(b"".join(name.encode() + data for name, data in wheels.items())).hexdigest()[:12]
        self.name = system_name(cluster_id, pool, f"wheels-{digest}") if wheels else None
        """Of the ConfigMap; None when there are none."""
        launcher = launcher_id(cluster_id, pool)
        labels = {PURPOSE_LABEL: "wheels", CLUSTER_LABEL: label_value(cluster_id), LAUNCHER_LABEL: launcher}
        self._ours = f"{PURPOSE_LABEL}=wheels,{LAUNCHER_LABEL}={launcher}"
        self._our_jobs = f"{LAUNCHER_LABEL}={launcher}"
        self._body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self.name, "labels": labels},
            "binaryData": {name: base64.b64encode(data).decode() for name, data in wheels.items()},
        }

    async def publish(self, namespace: str) -> None:
        """See to it that pods of a namespace find them. Raises InvalidRequest."""
        if self.name is None:
            return
        try:
            await self._api.create(paths_in(namespace).config_maps, self._body, Named)
        except Refused as error:
            if error.code != _EXISTS:
                raise InvalidRequest(f"the ConfigMap of the wheels cannot be made: {error}") from error

    async def tidy(self, namespace: str) -> None:
        """Remove those of before that no Job in a namespace mounts any more. Raises Refused and Unavailable."""
        paths = paths_in(namespace)
        query = {"labelSelector": self._ours}
        found = await self._api.get(paths.config_maps, ListOf[Named], query, accept=ONLY_METADATA)
        old = {item.metadata.name for item in found.items or ()} - {self.name}
        if old:
            for name in sorted(old - await self._mounted(namespace)):
                await self._api.delete(paths.config_map(name))
                log.info("kubernetes.old_wheels_removed", namespace=namespace, name=name)

    async def _mounted(self, namespace: str) -> set[str]:
        """Names of all ConfigMaps that our Jobs in a namespace mount."""
        mounted: set[str] = set()
        query = {"labelSelector": self._our_jobs, "limit": str(PAGE)}
        while True:
            page = await self._api.get(paths_in(namespace).jobs, ListOf[JobVolumes], query)
            for job in page.items or ():
                mounted |= job.config_maps
            if not page.metadata.continue_:
                return mounted
            query["continue"] = page.metadata.continue_

    async def withdraw(self, namespace: str) -> None:
        """Leave nothing in a namespace without pods. Raises Refused and Unavailable."""
        if self.name is not None:
            await self._api.delete(paths_in(namespace).config_map(self.name))
