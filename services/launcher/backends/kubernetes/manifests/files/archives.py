"""The files of a task as a ConfigMap and a Secret, and how they get into the container.

Everything the task owns travels in archives that the init container unpacks, as the task's own user, into an empty
directory; it becomes ``/run/determined``. Keys of the task and what users passed in are in the archive of the Secret.
Files that root owns are mounted as they are. Source: docs/reference/kubernetes.md 3.4 and 3.5.
"""

from __future__ import annotations

import base64
import functools
import gzip
import io
import posixpath
import tarfile
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from libs.errors import InvalidRequest
from libs.events.orders import TaskSpec
from services.launcher.backends.kubernetes.manifests.traits import PoolTraits, Ships
from services.launcher.container.files import Placed, container_files
from services.launcher.container.paths import RUN_DIR

PUBLIC_ARCHIVE: Final = "0.tar.gz"
PRIVATE_ARCHIVE: Final = "1.tar.gz"
INIT_SCRIPT: Final = "k8_init_container_entrypoint.sh"
CAPTURE_SCRIPTS: Final[Mapping[Ships, tuple[str, ...]]] = {
    "fluent-bit": (
        "capture_until_stored.py",
        "log_progress.py",
        "capture_and_ship.py",
        "ship.py",
        "intake_connection.py",
    ),
    "builtin": ("capture_and_ship.py", "log_progress.py", "ship.py", "intake_connection.py"),
    "nothing": (),
}
"""What is beside ``capture.py``; the first takes its place."""
ROOT: Final = posixpath.dirname(RUN_DIR)
"""Where the names in the archives begin."""

MAX_OBJECT_BYTES: Final = 1 << 20
"""Of all values of a ConfigMap or Secret together (https://kubernetes.io/docs/concepts/configuration/configmap/)."""

_MODIFIED: Final = 1_501_632_000


class Contents(Struct, frozen=True, kw_only=True):
    """What goes into the ConfigMap and the Secret of an allocation; values are base64 text."""

    public: dict[str, str]
    private: dict[str, str]
    rooted: tuple[Placed, ...] = ()
    """Files of root; their keys in ``public`` are their base names."""

    @property
    def archives(self) -> int:
        return 2 if PRIVATE_ARCHIVE in self.private else 1


def contents(spec: TaskSpec, traits: PoolTraits) -> Contents:
    """Raises InvalidRequest for files that cannot be placed."""
    placed = container_files(spec, scripts=traits.scripts, master_cert=traits.master_cert)
    secrets = _secret_paths(spec)
    users = [item for item in placed if item.owner == "user"]
    rooted = tuple(item for item in placed if item.owner == "root" and item.content is not None)
    users += [Placed(f"{RUN_DIR}/{name}", 0o755, traits.scripts[name]) for name in CAPTURE_SCRIPTS[traits.ships]]
    private = tuple(item for item in users if item.path in secrets)
    owner = (spec.owner.uid, spec.owner.gid)
    public = {
        PUBLIC_ARCHIVE: _packed(tuple(item for item in users if item.path not in secrets), *owner),
        INIT_SCRIPT: _encoded(traits.scripts[INIT_SCRIPT]),
    }
    for item in rooted:
        name = posixpath.basename(item.path)
        if name in public:
            raise InvalidRequest(f"multiple rooted files have same file name {item.path}")
        public[name] = _encoded(item.content or b"")
    return Contents(
        public=public, private={PRIVATE_ARCHIVE: _packed(private, *owner)} if private else {}, rooted=rooted
    )


def check_size(what: str, values: Iterable[str]) -> None:
    """Raises InvalidRequest when the object would be too large for Kubernetes.

    values  base64 text
    """
    size = sum(len(value) * 3 // 4 for value in values)
    if size > MAX_OBJECT_BYTES:
        raise InvalidRequest(
            f"the {what} of this task would hold {size} bytes, and Kubernetes allows {MAX_OBJECT_BYTES}: "
            "move large files, variables or hyperparameters into the image or a volume"
        )


def encoded_text(value: str) -> str:
    return _encoded(value.encode())


def _secret_paths(spec: TaskSpec) -> frozenset[str]:
    """What nobody but the task may read: its keys, and files that users or services passed in for it."""
    keys = {f"{RUN_DIR}/ssh/{name}" for name in ("authorized_keys", "id_rsa", "id_rsa.pub")} if spec.trial else set()
    return frozenset(keys | {posixpath.normpath(posixpath.join(RUN_DIR, file.path)) for file in spec.files})


@functools.lru_cache(maxsize=64)
def _packed(items: tuple[Placed, ...], uid: int, gid: int) -> str:
    """A compressed tar archive in base64; the same bytes for the same items, so that most tasks share one."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for item in items:
            info = tarfile.TarInfo(posixpath.relpath(item.path, ROOT))
            info.mode, info.uid, info.gid, info.mtime = item.mode, max(uid, 0), max(gid, 0), _MODIFIED
            if item.content is None:
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            else:
                info.size = len(item.content)
                archive.addfile(info, io.BytesIO(item.content))
    return _encoded(gzip.compress(buffer.getvalue(), mtime=0))


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
