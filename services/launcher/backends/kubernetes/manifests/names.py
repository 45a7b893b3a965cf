"""Names, labels and annotations of everything that is launched.

The label ``determined=<allocation>`` and the Job names are what users and their scripts know. ``resolute/launcher``
tells our objects from those of other pools and installations in the same namespace: nothing without it is touched.
Source: docs/reference/kubernetes.md 2; https://kubernetes.io/docs/concepts/overview/working-with-objects/names/.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta
from typing import Final

from libs.events.orders import TaskSpec
from services.launcher.backends.kubernetes.manifests.label_values import MAX_LENGTH, label_value

MAIN: Final = "determined-container"
INIT: Final = "determined-init-container"
FLUENT: Final = "determined-fluent-container"

ALLOCATION_LABEL: Final = "determined"
LAUNCHER_LABEL: Final = "resolute/launcher"
CLUSTER_LABEL: Final = "resolute/cluster-id"
PLACEHOLDER_LABEL: Final = "resolute/placeholder"
"""On pods that hold room for tasks of a launcher, with its id. They are none of its tasks."""
PURPOSE_LABEL: Final = "resolute/purpose"
"""On objects that belong to a launcher rather than to an allocation."""

JOB_NAME_LABEL: Final = "batch.kubernetes.io/job-name"
"""What Kubernetes itself puts on pods since 1.27, and documents; with it from us, commands that use it work before."""
HOSTNAME: Final = "kubernetes.io/hostname"
"""On nodes. Mostly it is the name of the node."""

ALLOCATION: Final = "resolute/allocation"
"""Annotation with the exact allocation id, which as a label may be cut."""
TASK: Final = "resolute/task"
SLOTS_PER_POD: Final = "resolute/slots-per-pod"
JOBS: Final = "resolute/jobs"
"""Annotation with all Jobs of an allocation that has several."""
MADE_OF: Final = "resolute/made-of"
"""Annotation of a Job with a fingerprint of it: whether what was begun by another launcher is what we would make."""
OUTCOME: Final = "resolute/outcome"
"""Annotation of a Job with how its pods ended, as far as that would be lost with them."""

_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9-]+")
_HASH_LENGTH: Final = 8
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def launcher_id(cluster_id: str, pool: str) -> str:
    """Value of the label that all objects of one launcher have, and no others."""
    return _hashed(f"{cluster_id}/{pool}", 20)


def job_name(spec: TaskSpec, allocation: str, cluster_id: str, *, ending: str = "") -> str:
    """``det-<first 8 of the cluster id>-<description>``, with a suffix where that does not tell one allocation.

    ending  of the name, whatever of the rest is left out
    At most 63 characters, for it becomes the label ``job-name``; the same whenever it is asked for.
    """
    run = allocation.rpartition(".")[2]
    says_which = spec.description.endswith(f"-attempt-{run}") or (spec.task in spec.description and run == "1")
    suffix = "" if says_which else f"-{_hashed(allocation, _HASH_LENGTH)}"
    return _dns_label(_prefixed(cluster_id, spec.description), f"{suffix}{ending}")


def secret_name(job: str, random_part: str) -> str:
    """Name of the Secret and of the ConfigMap of a Job; ``random_part`` is that of its order."""
    return f"{job}-{random_part}" if random_part else job


def registry_secret(secret: str) -> str:
    """Name of the Secret with the credentials for images, beside the one named ``secret``."""
    return f"{secret}-registry"


def system_name(cluster_id: str, pool: str, what: str) -> str:
    """Name of an object that belongs to the launcher of a pool."""
    return _dns_label(_prefixed(cluster_id, f"pool-{pool}"), f"-{_hashed(pool, _HASH_LENGTH)}-{what}")


def port_name(job: str, index: int) -> str:
    """Name of the Service, and of the route, of the proxied port ``index`` of a Job."""
    return f"{job[:60]}-{index}"


def labels(spec: TaskSpec, allocation: str, *, pool: str, cluster_id: str) -> dict[str, str]:
    """Labels of the Job and of its pods."""
    trial = spec.trial
    values = {
        ALLOCATION_LABEL: allocation,
        "determined.ai/allocation_id": allocation,
        "determined.ai/container_id": allocation,
        "determined.ai/task_id": spec.task,
        "determined.ai/task_type": spec.task_type,
        "determined.ai/resource_pool": pool,
        "determined.ai/workspace": spec.workspace,
        "determined.ai/user": spec.owner.username,
        "determined-queue-position": spec.queue_position or _queue_position(spec.submitted_at),
        "determined.ai/experiment_id": str(trial.experiment_id) if trial is not None else "",
        "determined.ai/trial_id": str(trial.trial_id) if trial is not None else "",
        CLUSTER_LABEL: cluster_id,
        LAUNCHER_LABEL: launcher_id(cluster_id, pool),
    }
    return {key: label_value(value) for key, value in values.items() if value}


def minor_labels(allocation: str, *, pool: str, cluster_id: str) -> dict[str, str]:
    """Labels of the objects that a Job owns."""
    return {
        ALLOCATION_LABEL: label_value(allocation),
        CLUSTER_LABEL: label_value(cluster_id),
        LAUNCHER_LABEL: launcher_id(cluster_id, pool),
    }


def notes(spec: TaskSpec, allocation: str) -> dict[str, str]:
    """Annotations of the Job and of its pods: what a launcher that was restarted has to know."""
    return {ALLOCATION: allocation, TASK: spec.task, SLOTS_PER_POD: str(spec.slots_per_pod)}


def node_label(cluster_id: str) -> str:
    """Label of nodes that are disabled (``no-execute``) or draining (``no-schedule``)."""
    return f"determined.ai/cluster-id-{cluster_id}"


def _queue_position(submitted_at: datetime | None) -> str:
    """Microseconds since 1970 times 10^30, 46 digits; for whoever sorts pods by it, for the scheduler does not."""
    if submitted_at is None:
        return "0"
    return str((submitted_at - _EPOCH) // timedelta(microseconds=1) * 10**30)


def _prefixed(cluster_id: str, description: str) -> str:
    return f"det-{cluster_id[:8]}-{description}" if cluster_id else description


def _dns_label(text: str, suffix: str) -> str:
    name = _NOT_IN_NAMES.sub("-", text.lower()).strip("-")
    if len(name) + len(suffix) > MAX_LENGTH:
        # What is cut off may have been all that made the name unique.
        suffix = f"-{_hashed(text, _HASH_LENGTH)}{suffix}"
        name = name[: MAX_LENGTH - len(suffix)].rstrip("-")
    return name + suffix


def _hashed(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
