"""Labels by which the coscheduler plugin starts the pods of a gang together (docs/reference/kubernetes.md 3.10)."""

from __future__ import annotations

from typing import Final

from libs.events.orders import TaskSpec
from services.launcher.backends.kubernetes.manifests.label_values import label_value
from services.launcher.backends.kubernetes.manifests.traits import PoolTraits

COSCHEDULER: Final = "coscheduler"
NAME: Final = "pod-group.scheduling.sigs.k8s.io/name"
MIN_AVAILABLE: Final = "pod-group.scheduling.sigs.k8s.io/min-available"


def gang_labels(spec: TaskSpec, traits: PoolTraits, *, scheduler: str, job: str) -> dict[str, str]:
    """To be merged below the user's labels; none for other schedulers."""
    if scheduler != COSCHEDULER:
        return {}
    counts = traits.slot_type == "cuda" and spec.slots > 0
    return {NAME: label_value(job), MIN_AVAILABLE: str(spec.num_pods if counts else 0)}
