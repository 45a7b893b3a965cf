"""Where a TensorBoard finds what it shows: directories of logs, the storage they are in, and the way there.

One process fetches them all with the storage of the newest experiment, so what lies in a storage of another type is not
found. Source: docs/reference/tasks-and-cli.md 3 (TensorBoard).
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from libs.config.parts.storage import storage as read_storage
from libs.config.stored import part
from libs.errors import InvalidRequest
from libs.shapes.problems import listing
from libs.shapes.shape import Object
from libs.tasks.checkpoint_gc import client_storage

SHARED_FS: Final = "/determined_shared_fs"
_TENSORBOARD: Final = "tensorboard"
_SCHEMES: Final = {"s3": "s3", "gcs": "gs"}


class TensorboardSource(Struct, frozen=True, kw_only=True):
    """An experiment, or some trials of it."""

    experiment_id: int
    config: Mapping[str, Any]
    """The complete configuration of the experiment."""
    trial_ids: tuple[int, ...] = ()
    """None of them are all of them."""


class TensorboardSources(Struct, frozen=True, kw_only=True):
    log_dirs: tuple[str, ...]
    storage: Object
    """checkpoint_storage of the newest experiment, as the client takes it."""
    variables: tuple[tuple[str, str], ...] = ()
    bind_mounts: tuple[Object, ...] = ()
    """Without which the directories are not there; as in configurations."""

    @property
    def shared_fs_host_path(self) -> str | None:
        """What is mounted where clients expect the storage of type ``shared_fs``."""
        found = (mount["host_path"] for mount in self.bind_mounts if mount["container_path"] == SHARED_FS)
        return next(found, None)


def tensorboard_sources(cluster_id: str, sources: Sequence[TensorboardSource]) -> TensorboardSources:
    """What a TensorBoard needs to show ``sources``, which are not empty.

    Raises InvalidRequest for an experiment without storage.
    """
    ascending = sorted(sources, key=lambda source: source.experiment_id)
    log_dirs: list[str] = []
    variables: Object = {}
    mounts: list[Object] = []
    for source in ascending:
        storage = part(source.config, "checkpoint_storage")
        if not storage.get("type"):
            raise InvalidRequest(f"experiment {source.experiment_id} has no checkpoint_storage to read from")
        if problems := read_storage(storage, "checkpoint_storage").problems:
            raise InvalidRequest(f"experiment {source.experiment_id} cannot be shown: {listing(problems)}")
        try:
            base = _base(source, storage, mounts)
        except KeyError as error:
            raise InvalidRequest(f"checkpoint_storage of experiment {source.experiment_id} lacks {error}") from error
        log_dirs += _log_dirs(f"{base}/{cluster_id}/{_TENSORBOARD}/experiment/{source.experiment_id}", source.trial_ids)
        variables.update(_s3_variables(storage))
    return TensorboardSources(
        log_dirs=tuple(log_dirs),
        storage=client_storage(ascending[-1].config["checkpoint_storage"]),
        variables=tuple(variables.items()),
        bind_mounts=tuple(mounts),
    )


def over_bind_mounts(config: Object, wanted: Iterable[Object]) -> Object:
    """``config`` with further mounts, after its own, which keep the places that they have taken."""
    own = config["bind_mounts"] or []
    taken = {mount["container_path"] for mount in own}
    return {
        **config,
        "bind_mounts": [*own, *(mount for mount in wanted if mount["container_path"] not in taken)] or None,
    }


def with_inherited_image(config: Object, newest: Mapping[str, Any]) -> Object:
    """``config`` with the image of an experiment, and with what it takes to pull it."""
    environment, inherited = config["environment"], part(newest, "environment")
    merged = {**environment, "image": {**environment["image"], **part(inherited, "image")}}
    registry = {key: value for key, value in part(inherited, "registry_auth").items() if value is not None}
    if registry and not environment.get("registry_auth"):
        merged["registry_auth"] = registry
    secrets = part(part(inherited, "pod_spec"), "spec").get("imagePullSecrets") or []
    if secrets:
        pod = environment["pod_spec"] or {}
        spec = pod.get("spec") or {}
        own = spec.get("imagePullSecrets") or []
        all_of_them = [*own, *(secret for secret in secrets if secret not in own)]
        merged["pod_spec"] = {**pod, "spec": {**spec, "imagePullSecrets": all_of_them}}
    return {**config, "environment": merged}


def _log_dirs(experiment: str, trial_ids: Sequence[int]) -> list[str]:
    return [f"{experiment}/trial/{trial}/" for trial in sorted(trial_ids)] or [f"{experiment}/"]


def _base(source: TensorboardSource, storage: Mapping[str, Any], mounts: list[Object]) -> str:
    """The storage as the container sees it; adds what has to be mounted for it."""
    match storage["type"]:
        case "shared_fs":
            return _shared_base(storage, mounts)
        case "directory":
            _add_mounts_above(source, storage["container_path"], mounts)
            return str(storage["container_path"]).rstrip("/")
        case "azure":
            return f"azure://{storage['container']}"
        case "s3" | "gcs" as kind:
            prefix = (storage.get("prefix") or "").strip("/")
            return f"{_SCHEMES[kind]}://{storage['bucket']}" + (f"/{prefix}" if prefix else "")
        case other:
            raise InvalidRequest(f"experiment {source.experiment_id} has a storage of type {other}, which nobody reads")


def _shared_base(storage: Mapping[str, Any], mounts: list[Object]) -> str:
    """Several directories of the host are mounted beside each other."""
    host_path = storage["host_path"]
    known = {mount["host_path"]: mount["container_path"] for mount in mounts if _is_shared(mount)}
    if host_path not in known:
        known[host_path] = f"{SHARED_FS}_{len(known)}" if known else SHARED_FS
        mounts.append(_mount(host_path, known[host_path]))
    below = storage.get("storage_path") or ""
    if posixpath.isabs(below):
        below = posixpath.relpath(below, host_path)
    return posixpath.normpath(posixpath.join(known[host_path], below))


def _is_shared(mount: Object) -> bool:
    return bool(mount["container_path"].startswith(SHARED_FS))


def _mount(host_path: str, container_path: str) -> Object:
    return {
        "host_path": host_path,
        "container_path": container_path,
        "read_only": False,
        "propagation": "rprivate",
    }


def _add_mounts_above(source: TensorboardSource, path: str, mounts: list[Object]) -> None:
    """The directory is where the experiment had mounted it, so a TensorBoard needs the same mounts."""
    taken = {mount["container_path"] for mount in mounts}
    for mount in source.config.get("bind_mounts") or ():
        root = posixpath.normpath(mount["container_path"])
        is_above = posixpath.normpath(path) == root or posixpath.normpath(path).startswith(f"{root.rstrip('/')}/")
        if is_above and mount["container_path"] not in taken:
            mounts.append(dict(mount))


def _s3_variables(storage: Mapping[str, Any]) -> dict[str, str]:
    if storage["type"] != "s3":
        return {}
    variables = {
        "AWS_ACCESS_KEY_ID": storage.get("access_key"),
        "AWS_SECRET_ACCESS_KEY": storage.get("secret_key"),
        "AWS_BUCKET": storage["bucket"],
    }
    if endpoint := storage.get("endpoint_url"):
        scheme, _, rest = endpoint.rpartition("://")
        variables |= {
            "DET_S3_ENDPOINT_URL": endpoint,
            "S3_ENDPOINT": rest.partition("/")[0],
            "S3_USE_HTTPS": "0" if scheme == "http" else "1",
        }
    return {name: value for name, value in variables.items() if value}
