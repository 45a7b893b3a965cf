"""The task that deletes files of checkpoints, and of TensorBoard: which arguments and files it gets.

The process inside is ``determined.exec.gc_checkpoints`` of the client package; it works on one storage configuration,
so there is one task per storage. Source: docs/reference/experiments.md 10.4; docs/reference/harness-protocol.md 13.1
and 15.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from libs.cluster.config import TaskContainerDefaults
from libs.config.defaults import CPU_IMAGE
from libs.config.parts.environment import image
from libs.config.stored import part, text_in
from libs.events.orders import BindMount, Environment, TaskFile, UsersPod
from libs.tasks.stored import StoredTask

EVERYTHING: Final = ("**/*",)
"""Globs that delete a checkpoint whole; no globs at all only refresh the list of its files."""

_FOLDER: Final = "checkpoint_gc"
_MOUNTED: Final = f"/run/determined/{_FOLDER}"


def checkpoint_gc_task(
    *,
    experiment_id: int,
    config: Mapping[str, Any],
    storage: Mapping[str, Any],
    checkpoints: Sequence[str],
    globs: Sequence[str] = EVERYTHING,
    delete_tensorboards: bool = False,
    defaults: TaskContainerDefaults,
    users_pod: UsersPod | None = None,
) -> StoredTask:
    """The task for checkpoints of one experiment in one storage.

    config       stored configuration of the experiment
    storage      checkpoint_storage of these checkpoints, which may differ from that in ``config``
    checkpoints  their uuids; none when there is only TensorBoard to delete
    defaults     task_container_defaults of the pool that the task runs in
    users_pod    what users wrote of the experiment's pods
    """
    argv = ["--experiment-id", str(experiment_id), "--storage-config", f"{_MOUNTED}/storage_config.json"]
    if checkpoints:
        argv += ["--delete", f"{_MOUNTED}/checkpoints_to_delete.json", "--globs", f"{_MOUNTED}/checkpoints_globs.json"]
    if delete_tensorboards:
        argv.append("--delete-tensorboards")
    return StoredTask(
        description=f"gc-{experiment_id}",
        environment=_environment(config, defaults),
        users_pod=users_pod if defaults.checkpoint_gc_pod_spec is None else None,
        argv=tuple(argv),
        files=(
            _file("storage_config.json", client_storage(storage)),
            _file("checkpoints_to_delete.json", list(checkpoints)),
            _file("checkpoints_globs.json", list(globs)),
        ),
        bind_mounts=tuple(_bind_mounts(config)),
        shared_fs_host_path=storage["host_path"] if storage.get("type") == "shared_fs" else None,
    )


def is_storage(section: Mapping[str, Any]) -> bool:
    """Whether a stored section says which storage it means."""
    return bool(text_in(section, "type")) and (section["type"] != "shared_fs" or bool(text_in(section, "host_path")))


def client_storage(storage: Mapping[str, Any]) -> dict[str, Any]:
    """A checkpoint_storage section in the form that the client's constructors take: they refuse unexpected keys."""
    optional = ("container_path", "checkpoint_path", "tensorboard_path") if storage.get("type") == "shared_fs" else ()
    unset = {key for key, value in storage.items() if value is None and (storage["type"] == "azure" or key in optional)}
    return {key: value for key, value in storage.items() if key not in unset}


def _environment(config: Mapping[str, Any], defaults: TaskContainerDefaults) -> Environment:
    """The variables are the experiment's, since they may hold credentials; the software is the cluster's."""
    experiment = part(config, "environment")
    variables = part(experiment, "environment_variables").get("cpu")
    images = image(defaults.image, "image").value if defaults.image is not None else {}
    registry_auth = {key: value for key, value in (defaults.registry_auth or {}).items() if value is not None}
    special = defaults.checkpoint_gc_pod_spec
    return Environment(
        image=images.get("cpu") or CPU_IMAGE,
        variables=tuple(each for each in variables if isinstance(each, str)) if isinstance(variables, list) else (),
        force_pull_image=defaults.force_pull_image,
        registry_auth=registry_auth or None,
        # Nothing is merged: the experiment's pod has the defaults of its time in it already.
        pod_spec=(part(experiment, "pod_spec") or None) if special is None else special,
        add_capabilities=tuple(defaults.add_capabilities),
        drop_capabilities=tuple(defaults.drop_capabilities),
    )


def _bind_mounts(config: Mapping[str, Any]) -> Iterator[BindMount]:
    """Those that are any: files are deleted with what a stored configuration has, or without it."""
    mounts = config.get("bind_mounts")
    for mount in mounts if isinstance(mounts, list) else ():
        with suppress(msgspec.ValidationError):
            yield msgspec.convert(mount, BindMount)


def _file(name: str, content: Any) -> TaskFile:
    return TaskFile(path=f"{_FOLDER}/{name}", content=msgspec.json.encode(content, order="deterministic"))


def deleted_by(task: StoredTask) -> frozenset[str]:
    """The checkpoints of which such a task deletes files, by their uuids."""
    contents = {file.path: file.content for file in task.files}
    if not msgspec.json.decode(contents.get(f"{_FOLDER}/checkpoints_globs.json", b"[]"), type=list[str]):
        return frozenset()
    uuids = contents.get(f"{_FOLDER}/checkpoints_to_delete.json", b"[]")
    return frozenset(msgspec.json.decode(uuids, type=list[str]))
