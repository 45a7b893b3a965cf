"""Jobs that an allocation consists of: one, as the pods of a Job are alike; or where its pods differ in slots, one for
each size, the largest first.

The first owns what all of them use, and its name is that of the allocation. Each Job and each pod says in an annotation
which Jobs there are, so that a launcher which finds one of them knows of the others. Pods of different sizes must not
take the places of one another, so those of each size run on the nodes that the plan has chosen for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from libs.events.orders import TaskSpec
from services.launcher.backends.kubernetes.manifests.names import job_name


class JobPart(Struct, frozen=True):
    name: str
    pods: int
    slots: int
    """Of each pod."""


def written(parts: Iterable[JobPart]) -> str:
    """``NAME:PODSxSLOTS`` of each, with commas between them."""
    return ",".join(f"{part.name}:{part.pods}x{part.slots}" for part in parts)


def parts_in(text: str) -> tuple[JobPart, ...]:
    """What was ``written``; () where that is nothing, or somebody has edited it."""
    found = []
    for each in text.split(",") if text else ():
        name, _, size = each.partition(":")
        pods, _, slots = size.partition("x")
        if not (name and pods.isdigit() and slots.isdigit()):
            return ()
        found.append(JobPart(name, int(pods), int(slots)))
    return tuple(found)


def job_parts(spec: TaskSpec, allocation: str, cluster_id: str) -> tuple[JobPart, ...]:
    """The Jobs of an allocation, in the order in which they are made."""
    sizes = Counter(spec.pod_slots)
    if len(sizes) < 2:
        name = job_name(spec, allocation, cluster_id)
        return (JobPart(name, spec.num_pods, spec.slots_per_pod),)
    return tuple(
        JobPart(job_name(spec, allocation, cluster_id, ending=f"-x{slots}"), sizes[slots], slots)
        for slots in sorted(sizes, reverse=True)
    )


def spec_of(part: JobPart, spec: TaskSpec) -> TaskSpec:
    """The task as the pods of one of its Jobs are to see it."""
    if len(set(spec.pod_slots)) < 2:
        return spec
    return msgspec.structs.replace(
        spec, pod_slots=(part.slots,) * part.pods, pod_nodes=tuple(sorted(_nodes_of(part.slots, spec)))
    )


def _nodes_of(slots: int, spec: TaskSpec) -> set[str]:
    """Where pods of a size may run. Two sizes on one node have all of their nodes in common: the smaller pod has the
    place of a larger one, and which of these places that is does not matter."""
    nodes: dict[int, set[str]] = {}
    for size, node in zip(spec.pod_slots, spec.pod_nodes, strict=False):
        nodes.setdefault(size, set()).add(node)
    mine = nodes.get(slots, set())
    return mine.union(*(others for others in nodes.values() if mine & others))
