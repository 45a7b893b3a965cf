"""Environment of a task container: every variable, in the order in which later ones override earlier ones.

Order (docs/reference/harness-protocol.md 4): defaults, image, all task types, task type, order's extras, the user's,
cluster block. Better than the reference: the user's order is kept, so that one variable can refer to another, and what
identifies the task to the master cannot be overridden by accident.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from libs.events.orders import TaskSpec, TrialTask
from services.launcher.container.paths import MASTER_CERT, RUN_DIR, work_dir
from services.launcher.container.settings import NO_VERIFICATION, TaskSettings

PROTECTED: Final = frozenset(
    {
        "DET_TASK_ID",
        "DET_ALLOCATION_ID",
        "DET_RESOURCES_ID",
        "DET_CONTAINER_ID",
        "DET_SESSION_TOKEN",
        "DET_USER_TOKEN",
        "DET_NOTEBOOK_TOKEN",
        "DET_USER",
        "DET_TASK_TYPE",
        "DET_RUN_DIR",
        "DET_TASK_LOGGING_METADATA",
        "DET_RESOURCES_TYPE",
        "DET_EXPERIMENT_ID",
        "DET_TRIAL_ID",
        "DET_TRIAL_RUN_ID",
    }
)
"""Ids and tokens: a task that changed them would report in the name of another, or not at all."""

_DEFAULTS: Final = {"PYTHONUNBUFFERED": "1"}
"""Without it Python writes to a pipe in blocks: a log would show nothing for minutes, and never what a kill leaves in
the buffer."""

MAX_VARIABLE_BYTES: Final = 128 * 1024 - 1
"""Linux refuses to start a program with a longer ``K=V`` (MAX_ARG_STRLEN, with its final NUL)."""


class PodIdentity(Struct, frozen=True, kw_only=True):
    """What differs between the pods of an allocation; None where the cluster fills it in (downward API)."""

    name: str | None = None
    node: str | None = None
    address: str | None = None


def task_environment(
    spec: TaskSpec,
    *,
    allocation: str,
    pool: str,
    slot_type: str,
    settings: TaskSettings,
    pod: PodIdentity,
    image: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Variables of one pod, in the order in which they should be set.

    slot_type  ``cpu``, ``cuda`` or ``rocm``
    image      what the image sets already; everything else overrides it
    """
    variables: dict[str, str] = {**_DEFAULTS, **(image or {})}
    layers: tuple[Iterable[tuple[str, str | None]], ...] = (
        _all_tasks(spec, allocation, pool, settings, pod).items(),
        _trial(spec.trial).items() if spec.trial is not None else (),
        sorted((name, str(port)) for name, port in spec.ports.items()),
        spec.extra_environment,
        user_variables(spec.environment.variables),
        _cluster(spec, slot_type, settings, pod).items(),
    )
    for layer in layers:
        for name, value in layer:
            if value is not None:
                # An override moves to the place of the later layer, after what its value may refer to.
                variables.pop(name, None)
                variables[name] = value
    return variables


def user_variables(entries: Iterable[str]) -> list[tuple[str, str]]:
    """``K=V`` entries as pairs, without those that may not be overridden; an entry without ``=`` has an empty value."""
    pairs = (entry.partition("=") for entry in entries)
    return [(name, value) for name, _, value in pairs if name and name not in PROTECTED]


def oversized_variables(variables: Mapping[str, str]) -> list[str]:
    """Names of variables too long for Linux to start a program with, in order."""
    return [name for name, value in variables.items() if len(f"{name}={value}".encode()) > MAX_VARIABLE_BYTES]


def _all_tasks(
    spec: TaskSpec, allocation: str, pool: str, settings: TaskSettings, pod: PodIdentity
) -> dict[str, str | None]:
    metadata = {"allocation_id": allocation, "task_id": spec.task}
    return {
        "DET_TASK_ID": spec.task,
        "DET_ALLOCATION_ID": allocation,
        "DET_RESOURCES_ID": allocation,
        "DET_CONTAINER_ID": pod.name,
        "DET_SESSION_TOKEN": spec.session_token,
        "DET_USER_TOKEN": spec.user_token,
        "DET_USER": spec.owner.username,
        "DET_TASK_TYPE": spec.task_type,
        "DET_WORKDIR": work_dir(spec),
        "DET_RUN_DIR": RUN_DIR,
        "PYTHONUSERBASE": f"{RUN_DIR}/pythonuserbase",
        "DET_USE_TLS": "true" if settings.master_url.startswith("https://") else "false",
        "DET_MASTER_CERT_FILE": _cert_file(settings) if settings.has_trust else None,
        "DET_SEGMENT_ENABLED": "false",
        "DET_TASK_LOGGING_METADATA": _compact(metadata),
        "DET_RESOURCES_TYPE": "k8s-job",  # what the client knows as: ranks come from the all-gather
        "DET_K8S_RESOURCE_POOL": pool,
        "GLOO_PORT_RANGE": settings.gloo_port_range,
        "DET_INTER_NODE_NETWORK_INTERFACE": settings.network_interface,
        "TRACEPARENT": spec.traceparent,
    }


def _trial(trial: TrialTask) -> dict[str, str | None]:
    return {
        "DET_EXPERIMENT_ID": str(trial.experiment_id),
        "DET_TRIAL_ID": str(trial.trial_id),
        "DET_TRIAL_RUN_ID": str(trial.trial_run_id),
        "DET_TRIAL_SEED": str(trial.seed),
        "DET_EXPERIMENT_CONFIG": _compact(trial.config),
        "DET_HPARAMS": _compact(trial.hparams),
        "DET_STEPS_COMPLETED": str(trial.steps_completed),
        "DET_LATEST_CHECKPOINT": trial.latest_checkpoint,
    }


def _cluster(spec: TaskSpec, slot_type: str, settings: TaskSettings, pod: PodIdentity) -> dict[str, str | None]:
    url = urlsplit(settings.master_url)
    port = url.port or (443 if url.scheme == "https" else 80)
    hides_gpus = slot_type == "cpu" or spec.slots == 0
    return {
        "DET_CLUSTER_ID": spec.cluster_id,
        "DET_MASTER": settings.master_url,
        "DET_MASTER_HOST": url.hostname or "",
        "DET_MASTER_ADDR": url.hostname or "",
        "DET_MASTER_PORT": str(port),
        "DET_MASTER_CERT_NAME": settings.master_cert_name,
        "DET_SLOT_IDS": _compact(list(range(spec.slots_per_pod))),
        "DET_KUBERNETES_JOB_PARALLELISM": str(spec.num_pods),
        "DET_KUBERNETES_POD_IP": pod.address,
        "DET_AGENT_ID": pod.node,
        "NVIDIA_VISIBLE_DEVICES": "void" if hides_gpus else None,
    }


def _cert_file(settings: TaskSettings) -> str:
    return NO_VERIFICATION if settings.master_cert_file == NO_VERIFICATION else MASTER_CERT


def _compact(value: Any) -> str:
    """JSON without spaces, keys in order; infinities and NaN as the client's own encoder writes and reads them."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
