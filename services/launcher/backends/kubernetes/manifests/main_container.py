"""The container that runs the task, and the one before it that puts the task's files in place.

Source: docs/reference/kubernetes.md 3.2, 3.3, 3.7 to 3.9 and 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from libs.events.orders import TaskSpec
from services.launcher.backends.kubernetes.manifests.files.archives import CAPTURE_SCRIPTS, INIT_SCRIPT
from services.launcher.backends.kubernetes.manifests.files.volumes import ARCHIVES_AT, SCRIPT_AT, UNPACKED_AT
from services.launcher.backends.kubernetes.manifests.names import INIT, MAIN
from services.launcher.backends.kubernetes.manifests.pod_fields import object_at, objects_at, texts_at
from services.launcher.backends.kubernetes.manifests.traits import PoolTraits, Ships
from services.launcher.backends.kubernetes.manifests.variables import literal
from services.launcher.container.command import container_argv
from services.launcher.container.paths import RUN_DIR, work_dir

Json = dict[str, Any]

TRIAL_PORT: Final = 1734
_ENDS_WITH_TASK: Final = "--sidecar-ends-with-task"
"""A container like any other is asked to end when the task is; a native sidecar is not before the task has ended."""
_WHEN_FULL: Final[Mapping[Ships, Literal["block", "stored", "drop"]]] = {
    "fluent-bit": "stored",
    "builtin": "block",
    "nothing": "drop",
}
_PATH: Final = f"spec.containers[{MAIN}]"


def main_container(spec: TaskSpec, traits: PoolTraits, user: Json, *, env: list[Json], mounts: list[Json]) -> Json:
    """``determined-container``. Of the user's container of that name, what is not ours to say is left out.

    env, mounts  complete, apart from the user's own mounts
    Raises InvalidRequest.
    """
    container: Json = {
        "name": MAIN,
        "image": spec.environment.image,
        "imagePullPolicy": pull_policy(spec),
        "command": [literal(argument) for argument in _command(spec, traits)],
        "workingDir": work_dir(spec),
        "env": env,
        "resources": resources(spec, traits, user),
        "volumeMounts": [*mounts, *objects_at(user, "volumeMounts", _PATH)],
        "securityContext": {**object_at(user, "securityContext", _PATH), **identity(spec)},
    }
    if found := ports(spec):
        container["ports"] = [{"containerPort": port} for port in found]
    for field in ("envFrom", "volumeDevices"):
        if items := objects_at(user, field, _PATH):
            container[field] = items
    return container


def init_container(spec: TaskSpec, *, archives: int, mounts: list[Json]) -> Json:
    """``determined-init-container``: the task's image and user, and nothing of the user's wishes."""
    return {
        "name": INIT,
        "image": spec.environment.image,
        "imagePullPolicy": pull_policy(spec),
        "command": [f"{SCRIPT_AT}{INIT_SCRIPT}"],
        "args": [str(archives), ARCHIVES_AT, UNPACKED_AT],
        "workingDir": SCRIPT_AT,
        "securityContext": identity(spec),
        "volumeMounts": mounts,
    }


def pull_policy(spec: TaskSpec) -> str:
    return "Always" if spec.environment.force_pull_image else "IfNotPresent"


def identity(spec: TaskSpec) -> Json:
    return {"runAsUser": spec.owner.uid, "runAsGroup": spec.owner.gid}


def resources(spec: TaskSpec, traits: PoolTraits, user: Json) -> Json:
    """Slots are ours to say; everything else is the user's (docs/reference/kubernetes.md 3.8)."""
    name = traits.slot_resource
    wanted = object_at(user, "resources", _PATH)
    ours: dict[str, str] = {}
    if spec.slots_per_pod > 0:
        is_cpu = traits.slot_type == "cpu"
        ours[name] = f"{int(traits.slot_cpu * spec.slots_per_pod * 1000)}m" if is_cpu else str(spec.slots_per_pod)
    made = {}
    for kind in ("requests", "limits"):
        theirs = texts_at(wanted, kind, f"{_PATH}.resources")
        if name != "cpu":
            theirs.pop(name, None)  # a task without slots must not help itself to one
        if merged := {**theirs, **ours}:
            made[kind] = merged
    if "claims" in wanted:
        made["claims"] = wanted["claims"]
    return made


def ports(spec: TaskSpec) -> list[int]:
    """Ports that something in the container may listen on, for information, each once."""
    trial = [TRIAL_PORT] if spec.trial is not None else []
    proxied = [proxy.port for proxy in spec.proxy_ports]
    return list(dict.fromkeys([*spec.environment.ports, *proxied, *trial, *spec.ports.values()]))


def _command(spec: TaskSpec, traits: PoolTraits) -> tuple[str, ...]:
    ships = traits.ships
    argv = container_argv(
        spec,
        python=None,
        when_full=_WHEN_FULL[ships],
        cap_bytes=traits.shipper.max_unshipped_bytes,
    )
    if not CAPTURE_SCRIPTS[ships]:
        return argv
    at = argv.index(f"{RUN_DIR}/capture.py")
    capture: tuple[str, ...] = (
        f"{RUN_DIR}/{CAPTURE_SCRIPTS[ships][0]}",
        "--intake",
        traits.tasks.log_intake_url or "",
        "--outage-wait-s",
        f"{spec.log_outage_wait_s:g}",
    )
    if ships == "fluent-bit" and not traits.has_native_sidecars:
        capture += (_ENDS_WITH_TASK,)
    return (*argv[:at], *capture, *argv[at + 1 :])
