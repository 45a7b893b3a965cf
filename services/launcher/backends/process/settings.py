"""Settings of the process backend."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class ProcessSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    state_dir: str = "/var/lib/resolute/launcher"
    """Everything about running allocations. On a disk: a launcher that is restarted finds its tasks here."""
    python: str | None = None
    """Interpreter of the tasks, which has the ``determined`` package: it takes the place of the image. None takes the
    first ``python3`` on the PATH."""
    slots: Annotated[int, Meta(ge=0)] | None = None
    """Slots this machine offers; None offers one per core."""
    node_name: str | None = None
    """Shown as the agent; None takes the host name."""
    address: str = "127.0.0.1"
    """Where the api reaches what tasks serve."""
    wheels_dir: str | None = None
    """Directory that tasks see as ``/opt/determined/wheels``, for those that install the client themselves."""
    visible_paths: tuple[str, ...] = ()
    """Directories of this machine that tasks see although they lie in ``/tmp``, where each task has its own files.
    What their interpreter needs is seen anyway."""
    hidden_paths: tuple[str, ...] = ()
    """Directories of which tasks see nothing, besides the state directory: databases, settings and logs of services."""
    mountable_paths: tuple[str, ...] = ()
    """Directories in hidden ones that tasks may mount all the same, such as that of the checkpoints."""
    allowed_system_mounts: tuple[str, ...] = ()
    """Places of the system (below ``/usr``, ``/etc`` and the like) over which tasks may mount."""
    pass_environment: tuple[str, ...] = ()
    """Variables of the launcher that tasks get, besides PATH, HOME, locale, time zone, proxies and certificates."""
    max_unshipped_bytes: Annotated[int, Meta(ge=8 << 20)] = 1 << 30
    """Output of a pod that may wait on the disk for the log intake; a task that prints more than that waits too."""
    log_delivery_s: Annotated[float, Meta(ge=0)] = 3600.0
    """How long output that could not be delivered is kept after a task whose order is gone."""
