"""Stored specification of a task that is not a trial: the document in ``tasks.spec``.

Whoever creates the task writes it (the api for what users launch, the scheduler for checkpoint GC of its own accord);
the scheduler reads it when the task gets its slots. It lacks what is only known then: tokens, ports, the POSIX user.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from libs.events.orders import BindMount, Environment, ProxyPort, TaskFile, UsersPod


class StoredTask(Struct, frozen=True, kw_only=True):
    """Fields mean what they mean in ``libs.events.orders.TaskSpec``."""

    description: str
    environment: Environment = Environment()
    users_pod: UsersPod | None = None
    argv: tuple[str, ...] = ()
    extra_environment: tuple[tuple[str, str], ...] = ()
    files: tuple[TaskFile, ...] = ()
    work_dir: str | None = None
    bind_mounts: tuple[BindMount, ...] = ()
    shared_fs_host_path: str | None = None
    proxy_ports: tuple[ProxyPort, ...] = ()
    shm_size_bytes: int | None = None


def to_document(task: StoredTask) -> dict[str, Any]:
    """Plain values that JSON can carry; file contents become base64 text."""
    document: dict[str, Any] = msgspec.to_builtins(task)
    return document


def from_document(document: dict[str, Any]) -> StoredTask:
    """Read back what ``to_document`` wrote. Raises msgspec.ValidationError."""
    return msgspec.convert(document, StoredTask)
