"""Configuration of an installation in its backup: the file that all services read, and what ``resolute up`` was told.

Passwords of the database and of the bus are not in it: a new installation makes its own. Which keys of the file hold
secrets stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import yaml
from msgspec import Struct

from deploy.backup.archive import ArchiveWriter, read_sections
from libs.config import CREDENTIALS
from libs.errors import InvalidRequest

PREFIX: Final = "configuration"
CLUSTER: Final = f"{PREFIX}/cluster.yaml"
SECRETS: Final = f"{PREFIX}/secrets.json"
UP: Final = f"{PREFIX}/up.json"
_SECRET_KEYS: Final = CREDENTIALS | {"initial_user_password", "client_secret", "signing_key"}

_Read = TypeVar("_Read")


class UpOptions(Struct, frozen=True, kw_only=True):
    """What ``resolute up`` was told, or found, on the machine of the backup."""

    host: str
    port: int
    slots: int
    python: str
    subscribers: tuple[str, ...] = ()
    kubernetes: dict[str, Any] | None = None
    """Options of tasks that are pods, by name."""


class Configuration(Struct, frozen=True, kw_only=True):
    cluster: bytes | None = None
    """The cluster configuration file; None where there is none."""
    secrets: tuple[str, ...] = ()
    """Its keys whose values are secrets."""
    up: UpOptions | None = None
    """None where the services were not started by ``resolute up``."""


def read_cluster_file(path: Path | None, up: UpOptions | None) -> Configuration:
    """What a backup has of an installation. Raises InvalidRequest for a file that cannot be read."""
    if path is None:
        return Configuration(up=up)
    try:
        cluster = path.read_bytes()
        return Configuration(cluster=cluster, secrets=tuple(secret_keys(yaml.safe_load(cluster))), up=up)
    except (OSError, yaml.YAMLError) as error:
        raise InvalidRequest(f"the cluster configuration {path} cannot be read: {error}") from error


def secret_keys(value: Any, path: str = "") -> Iterator[str]:
    """Keys of a cluster configuration that hold a secret, from its top: ``checkpoint_storage.secret_key``. Pure."""
    if isinstance(value, dict):
        for key, item in value.items():
            name = f"{path}.{key}" if path else str(key)
            if key in _SECRET_KEYS and isinstance(item, str) and item:
                yield name
            else:
                yield from secret_keys(item, name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from secret_keys(item, f"{path}[{index}]")


def checkpoint_folder(configuration: Configuration) -> str | None:
    """Where checkpoints are by default, when that is a folder."""
    content = yaml.safe_load(configuration.cluster or b"")
    storage = content.get("checkpoint_storage") if isinstance(content, dict) else None
    path = storage.get("host_path") if isinstance(storage, dict) else None
    return path if isinstance(path, str) else None


def dump_configuration(configuration: Configuration, archive: ArchiveWriter) -> None:
    sections = {SECRETS: msgspec.json.encode(configuration.secrets)}
    if configuration.cluster is not None:
        sections[CLUSTER] = configuration.cluster
    if configuration.up is not None:
        sections[UP] = msgspec.json.encode(configuration.up)
    for name, content in sections.items():
        with archive.section(name) as section:
            section.write(content)


def read_configuration(file: Path) -> Configuration:
    """The configuration in a backup; those of releases before have none. Raises InvalidRequest."""
    found = {name: b"".join(parts) for name, parts in read_sections(file) if name.startswith(f"{PREFIX}/")}
    return Configuration(
        cluster=found.get(CLUSTER),
        secrets=_decode(found.get(SECRETS, b"[]"), tuple[str, ...]),
        up=_decode(found[UP], UpOptions) if UP in found else None,
    )


def _decode(content: bytes, kind: type[_Read]) -> _Read:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"the configuration in the backup cannot be read: {error}") from error
