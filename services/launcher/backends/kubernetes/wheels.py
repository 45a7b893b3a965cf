"""The wheels that tasks install, in one ConfigMap that all pods of the pool mount.

In the ConfigMap of every task they would leave little room for anything else, and cost three quarters of a megabyte
each time. The name says what is in it, so pods of before an upgrade keep what they have.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any, Final

from libs.errors import InvalidRequest
from services.launcher.backends.kubernetes.api import KubeApi, Refused
from services.launcher.backends.kubernetes.objects import Named
from services.launcher.backends.kubernetes.paths import Paths
from services.launcher.backends.kubernetes.spec.archives import MAX_OBJECT_BYTES
from services.launcher.backends.kubernetes.spec.label_values import label_value
from services.launcher.backends.kubernetes.spec.names import (
    CLUSTER_LABEL,
    LAUNCHER_LABEL,
    PURPOSE_LABEL,
    launcher_id,
    system_name,
)

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


async def publish_wheels(
    api: KubeApi, *, paths: Paths, directory: str | None, pool: str, cluster_id: str
) -> str | None:
    """Name of the ConfigMap with the wheels, made if need be; None when there are none. Raises InvalidRequest."""
    wheels = read_wheels(directory) if directory is not None else {}
    if not wheels:
        return None
    digest = hashlib.sha256(b"".join(name.encode() + data for name, data in wheels.items())).hexdigest()[:12]
    name = system_name(cluster_id, pool, f"wheels-{digest}")
    labels = {
        PURPOSE_LABEL: "wheels",
        CLUSTER_LABEL: label_value(cluster_id),
        LAUNCHER_LABEL: launcher_id(cluster_id, pool),
    }
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels},
        "binaryData": {name: base64.b64encode(data).decode() for name, data in wheels.items()},
    }
    try:
        await api.create(paths.config_maps, body, Named)
    except Refused as error:
        if error.code != _EXISTS:
            raise InvalidRequest(f"the ConfigMap of the wheels cannot be made: {error}") from error
    return name
