"""Volumes of a task pod and where they are mounted (docs/reference/kubernetes.md 3.5).

What a user's pod spec mounts at a path takes the place of a bind mount or of the shared memory there.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from libs.events.orders import BindMount, TaskSpec
from services.launcher.backends.kubernetes.manifests.files.archives import INIT_SCRIPT, ROOT, Contents
from services.launcher.backends.kubernetes.manifests.traits import DEFAULT_SHM_BYTES, PoolTraits
from services.launcher.container.files import Placed
from services.launcher.container.paths import LOG_DIR, RUN_DIR, SHARED_FS, WHEELS_DIR, mount_path

Json = dict[str, Any]

ARCHIVES_AT: Final = "/run/determined/temp/tar/src"
UNPACKED_AT: Final = "/run/determined/temp/tar/dst"
SCRIPT_AT: Final = "/run/determined/temp/"
FLUENT_AT: Final = "/run/determined/fluent"
FLUENT_KEY: Final = "fluent-bit.yaml"
LOGS_VOLUME: Final = "det-logs-volume"
FLUENT_VOLUME: Final = "det-fluent-volume"
LOGS_HEADROOM: Final = 256 << 20
"""For the shipper's own files, and for what is written until the limit is noticed: beyond it the pod is evicted."""

_SHM_AT: Final = "/dev/shm"  # noqa: S108
_PROPAGATION: Final = {"private": "None", "rslave": "HostToContainer", "rshared": "Bidirectional"}


class Volumes(Struct, frozen=True, kw_only=True):
    volumes: list[Json]
    main: list[Json]
    init: list[Json]


def volumes(
    spec: TaskSpec, traits: PoolTraits, contents: Contents, *, config_map: str, secret: str, user_mounts: Iterable[str]
) -> Volumes:
    """The launcher's volumes, and the mounts of the two containers that are ours.

    user_mounts  paths in the main container at which the user's pod spec mounts something
    """
    taken = {posixpath.normpath(path) for path in user_mounts}
    made: list[Json] = []
    main: list[Json] = []
    for index, mount in enumerate(_host_mounts(spec)):
        path = mount_path(spec, mount.container_path)
        if posixpath.normpath(path) not in taken:
            made.append({"name": f"det-host-volume-{index}", "hostPath": {"path": mount.host_path}})
            main.append(_host_mount(f"det-host-volume-{index}", path, mount))
            taken.add(posixpath.normpath(path))
    if _SHM_AT not in taken:
        made.append({"name": "det-shm-volume", "emptyDir": _shared_memory(spec)})
        main.append({"name": "det-shm-volume", "mountPath": _SHM_AT})
    made += [
        _archives(contents, config_map, secret),
        {
            "name": "entrypoint-volume",
            "configMap": {
                "name": config_map,
                "defaultMode": 0o555,
                "items": [{"key": INIT_SCRIPT, "path": INIT_SCRIPT}],
            },
        },
        {"name": "additional-files-volume", "emptyDir": {}},
    ]
    main.append(
        {
            "name": "additional-files-volume",
            "mountPath": RUN_DIR,
            "subPath": posixpath.relpath(RUN_DIR, ROOT),
        }
    )
    _add_logs(made, main, traits, config_map)
    _add_rooted(made, main, contents.rooted, config_map)
    if traits.wheels is not None:
        made.append({"name": "det-wheels-volume", "configMap": {"name": traits.wheels}})
        main.append({"name": "det-wheels-volume", "mountPath": WHEELS_DIR, "readOnly": True})
    init: list[Json] = [
        {"name": "archive-volume", "mountPath": ARCHIVES_AT, "readOnly": True},
        {"name": "entrypoint-volume", "mountPath": SCRIPT_AT, "readOnly": True},
        {"name": "additional-files-volume", "mountPath": UNPACKED_AT},
    ]
    return Volumes(volumes=made, main=main, init=init)


def _host_mounts(spec: TaskSpec) -> list[BindMount]:
    mounts = list(spec.bind_mounts)
    if spec.shared_fs_host_path is not None:
        mounts.append(BindMount(host_path=spec.shared_fs_host_path, container_path=SHARED_FS))
    return mounts


def _host_mount(name: str, path: str, mount: BindMount) -> Json:
    made: Json = {"name": name, "mountPath": path}
    if mount.read_only:
        made["readOnly"] = True
    if mount.propagation in _PROPAGATION:
        made["mountPropagation"] = _PROPAGATION[mount.propagation]
    return made


def _shared_memory(spec: TaskSpec) -> Json:
    """Without a limit unless somebody set one: the default is there for Docker, whose own would be 64 MiB."""
    limit = spec.shm_size_bytes
    is_set = limit is not None and limit not in (0, DEFAULT_SHM_BYTES)
    return {"medium": "Memory", "sizeLimit": str(limit)} if is_set else {"medium": "Memory"}


def _archives(contents: Contents, config_map: str, secret: str) -> Json:
    def items(keys: Iterable[str]) -> list[Json]:
        return [{"key": key, "path": key} for key in keys if key.endswith(".tar.gz")]

    sources: list[Json] = [{"configMap": {"name": config_map, "items": items(contents.public)}}]
    if contents.private:
        sources.append({"secret": {"name": secret, "items": items(contents.private)}})
    return {"name": "archive-volume", "projected": {"sources": sources}}


def _add_logs(made: list[Json], main: list[Json], traits: PoolTraits, config_map: str) -> None:
    limit = traits.shipper.max_unshipped_bytes + LOGS_HEADROOM
    if traits.ships == "fluent-bit":
        limit *= 2  # fluent-bit's copies of what it could not send grow between two counts
        made.append(
            {
                "name": FLUENT_VOLUME,
                "configMap": {"name": config_map, "items": [{"key": FLUENT_KEY, "path": FLUENT_KEY}]},
            }
        )
    made.append({"name": LOGS_VOLUME, "emptyDir": {"sizeLimit": str(limit)}})
    main.append({"name": LOGS_VOLUME, "mountPath": LOG_DIR})


def _add_rooted(made: list[Json], main: list[Json], rooted: tuple[Placed, ...], config_map: str) -> None:
    """Files of root, each mounted alone: a mount over its directory would hide what the image has there."""
    items = [
        {"key": posixpath.basename(item.path), "path": posixpath.basename(item.path), "mode": item.mode}
        for item in rooted
    ]
    if not items:
        return
    made.append({"name": "root-volume-0", "configMap": {"name": config_map, "items": items}})
    main += [
        {
            "name": "root-volume-0",
            "mountPath": item.path,
            "subPath": posixpath.basename(item.path),
            "readOnly": True,
        }
        for item in rooted
    ]
