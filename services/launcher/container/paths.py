"""Paths inside every task container (docs/reference/harness-protocol.md 4 and 5)."""

from __future__ import annotations

import posixpath
from typing import Final

from libs.events.orders import TaskSpec

RUN_DIR: Final = "/run/determined"
WORK_DIR: Final = f"{RUN_DIR}/workdir"
LOG_DIR: Final = f"{RUN_DIR}/logs"
"""Capture files, until a shipper has sent them."""
WHEELS_DIR: Final = "/opt/determined/wheels"
SHARED_FS: Final = "/determined_shared_fs"
MASTER_CERT: Final = f"{RUN_DIR}/etc/ssl/master.crt"


def work_dir(spec: TaskSpec) -> str:
    """Working directory of the task; always the default for trials and checkpoint GC."""
    if spec.work_dir is None or spec.task_type in ("TRIAL", "CHECKPOINT_GC"):
        return WORK_DIR
    directory = spec.work_dir.replace("$AGENT_USER", spec.owner.user).replace("$DET_USER", spec.owner.username)
    return posixpath.join("/", directory)  # as Kubernetes takes one that is relative


def mount_path(spec: TaskSpec, container_path: str) -> str:
    """A mount point as the user wrote it, made absolute: relative ones are meant below the working directory."""
    return container_path if container_path.startswith("/") else f"{work_dir(spec)}/{container_path}"
