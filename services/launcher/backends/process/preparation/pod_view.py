"""View of a pod: what it sees of this machine, and of the launcher's environment (pure)."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from libs.events.orders import TaskSpec
from services.launcher.backends.process.isolation.hidden_directories import covers
from services.launcher.backends.process.isolation.mounts import COVER_BYTES
from services.launcher.backends.process.records import MountPlan, PodFiles
from services.launcher.container.paths import LOG_DIR, RUN_DIR, SHARED_FS, WHEELS_DIR, mount_path

_PASSED: Final = frozenset(
    {
        "HOME",
        "LANG",
        "LANGUAGE",
        "TZ",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    }
)
_PASSED_WITHOUT_A_CERTIFICATE: Final = frozenset({"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"})
"""The client would trust what they name instead of the certificate that it is given for the master."""
_DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def pod_name(allocation: str, rank: int, description: str) -> str:
    """Name of a pod, the same whenever it is asked for; its first eight characters tell it from others in logs."""
    digest = hashlib.sha256(f"{allocation}/{rank}".encode()).hexdigest()
    return f"{digest[:8]}-{description}-{rank}"


def image_environment(
    environ: Mapping[str, str], *, python: str, passed: Sequence[str], has_certificate: bool = False
) -> dict[str, str]:
    """What takes the place of an image's variables: the task's Python first on the PATH, and little of the launcher's.

    environ          the launcher's environment
    passed           names that tasks get besides the usual ones
    has_certificate  tasks are told how to trust the master
    """
    usual = _PASSED if has_certificate else _PASSED | _PASSED_WITHOUT_A_CERTIFICATE
    kept = {
        name: value
        for name, value in environ.items()
        if name.upper() in usual or name.startswith("LC_") or name in passed
    }
    return {
        **kept,
        "PATH": f"{posixpath.dirname(python)}:{environ.get('PATH') or _DEFAULT_PATH}",
        "DET_PYTHON_EXECUTABLE": python,
        "DET_SKIP_PIP_INSTALL": "1",
    }


def pod_mounts(
    spec: TaskSpec,
    *,
    files: PodFiles,
    hidden: Iterable[str],
    wheels_dir: str | None,
    visible: Iterable[str],
    placed: Mapping[str, str],
    missing_work_dir: str | None,
) -> tuple[MountPlan, ...]:
    """Everything that is mounted in a pod, in order.

    hidden            directories of which no task may see anything
    visible           directories that stay visible where something is hidden
    placed            path in the container -> file that is placed there, outside ``/run/determined``
    missing_work_dir  working directory that this machine does not have, which the task gets empty
    """
    mounts = [
        MountPlan(target=RUN_DIR, source=str(files.run), is_private=True),
        MountPlan(target=LOG_DIR, source=str(files.logs), is_private=True),
        MountPlan(target="/opt/determined", source=str(files.opt), is_private=True),
        MountPlan(target="/dev/shm", source=None, size_bytes=spec.shm_size_bytes),  # noqa: S108
    ]
    for path, is_hidden in covers(("/tmp", *hidden), visible):  # noqa: S108
        if path == "/tmp":  # noqa: S108  each pod has its own; gangs put sockets with the same name there
            mounts.append(MountPlan(target=path, source=str(files.tmp), is_private=True))
        elif is_hidden:
            # Orders hold tokens, and tasks may run as the launcher's user.
            mounts.append(MountPlan(target=path, source=None, size_bytes=COVER_BYTES))
        else:
            mounts.append(MountPlan(target=path, source=path))
    if wheels_dir is not None:
        mounts.append(MountPlan(target=WHEELS_DIR, source=wheels_dir, read_only=True))
    mounts += [MountPlan(target=target, source=source, read_only=True) for target, source in placed.items()]
    if missing_work_dir is not None:
        mounts.append(MountPlan(target=missing_work_dir, source=str(files.work), is_private=True))
    if spec.shared_fs_host_path is not None:
        mounts.append(MountPlan(target=SHARED_FS, source=spec.shared_fs_host_path, is_of_order=True))
    mounts += [
        MountPlan(
            target=mount_path(spec, bind.container_path),
            source=bind.host_path,
            read_only=bind.read_only,
            is_of_order=True,
        )
        for bind in spec.bind_mounts
    ]
    return tuple(mounts)
