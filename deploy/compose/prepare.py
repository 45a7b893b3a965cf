"""Makes the passwords that are missing, and writes each where its reader finds it.

``python -m deploy.compose.prepare`` runs before everything else, each time. Passwords stay what they are; the
configuration of the bus is written anew, so that it fits this release and the pools of today.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from deploy.compose.secret_files import ADMIN, files, names
from deploy.local.configuration.initial_password import new_password
from libs.bus.settings import BusSettings
from libs.cluster.loading import read_cluster_config
from libs.errors import InvalidRequest, ResoluteError
from libs.settings import load

ROOT: Final = Path("/secrets")
KEPT: Final = Path("kept/passwords.json")
CLUSTER_CONFIG: Final = "RESOLUTE_CLUSTER_CONFIG"
_OWNER_ONLY: Final = 0o600
_READERS: Final = 0o444
"""Of a file in a volume that only its readers mount: they run as different users."""


class _Settings(Struct, frozen=True, kw_only=True):
    bus: BusSettings = BusSettings()


def prepare(root: Path, cluster_config: Path, subscribers: Sequence[str] = ()) -> None:
    """Bring all files below ``root`` up to date. Raises InvalidRequest.

    subscribers  names of those that get an account on the bus of their own
    """
    pools = [pool.pool_name for pool in read_cluster_config(cluster_config)[0].resource_pools]
    kept = _kept(root / KEPT)
    missing = {name: _new_password(name) for name in names(pools, subscribers) if name not in kept}
    if missing:
        _write(root / KEPT, json.dumps(kept | missing, indent=2), mode=_OWNER_ONLY)
    for path, content in files(kept | missing, pools, subscribers).items():
        _write(root / path, content, mode=_READERS)


def _kept(path: Path) -> dict[str, str]:
    try:
        kept: dict[str, str] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    return kept


def _new_password(name: str) -> str:
    return new_password() if name == ADMIN else secrets.token_urlsafe(24)


def _write(path: Path, content: str, *, mode: int) -> None:
    """Whole or not at all. Raises InvalidRequest when there is no volume for it."""
    if not path.parent.is_dir():
        raise InvalidRequest(f"there is no volume at {path.parent}: mount one here and where {path.name} is read")
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), "w") as file:
        file.write(content)
    partial.chmod(mode)
    partial.replace(path)


if __name__ == "__main__":
    try:
        # The same variable that tells the services whose copies of the events they keep up to date.
        bus = load(_Settings, None, os.environ).bus
        prepare(ROOT, Path(os.environ[CLUSTER_CONFIG]), bus.subscribers)
    except ResoluteError as error:
        sys.exit(f"prepare: {error}")
