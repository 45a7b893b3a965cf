"""Directories and devices of the host that appear in task containers.

Source: docs/reference/experiments.md 1.3 (bind_mount, device).
"""

from __future__ import annotations

import posixpath
import re
from typing import Any, Final

from libs.shapes.shape import Fields, Read, Shape, by_type, checked, flag, list_of, record, text, wrong

_DEVICE: Final = re.compile(r"/[^:]*:/[^:]*(:[rwm]*)?")
_DEVICE_MODE: Final = "mrw"


def _absolute_host_path(mount: dict[str, Any]) -> str | None:
    return None if posixpath.isabs(mount["host_path"]) else "host_path must be an absolute path"


def _container_path_below(mount: dict[str, Any]) -> str | None:
    return 'container_path must not be "."' if mount["container_path"] == "." else None


bind_mount_fields: Final[Fields] = {"host_path": text, "container_path": text, "read_only": flag, "propagation": text}
bind_mount: Final = checked(
    record(
        bind_mount_fields,
        required=("host_path", "container_path"),
        defaults={"read_only": False, "propagation": "rprivate"},
    ),
    _absolute_host_path,
    _container_path_below,
)


def _device_text(value: str, path: str) -> Read:
    if _DEVICE.fullmatch(value) is None:
        return wrong(path, 'a device must look like "/host/path:/container/path" or "/host/path:/container/path:mrw"')
    host_path, container_path, *mode = value.split(":")
    device = {"host_path": host_path, "container_path": container_path, "mode": mode[0] if mode else _DEVICE_MODE}
    return Read(device)


_DEVICE_FIELDS: Final[Fields] = {"host_path": text, "container_path": text, "mode": text}


def device_shape(*, lenient: bool) -> Shape:
    """A device as text or as an object, whose unknown keys are mistakes unless ``lenient``."""
    fields = record(_DEVICE_FIELDS, required=("host_path", "container_path"), defaults={"mode": _DEVICE_MODE})

    def known(value: Any, path: str) -> Read:
        return fields({key: item for key, item in value.items() if key in _DEVICE_FIELDS}, path)

    return by_type(string=_device_text, object=known if lenient else fields)


device: Final = device_shape(lenient=False)

bind_mounts: Final = list_of(bind_mount)
devices: Final = list_of(device)
