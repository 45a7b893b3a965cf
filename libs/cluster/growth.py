"""How a pool asks an autoscaler for nodes, as the cluster configuration has it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from libs.podspec.quantities import quantity

PAUSE_IMAGE = "registry.k8s.io/pause:3.10"
Quantity = str | int | float


class TemplateTaint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    key: Annotated[str, Meta(min_length=1)]
    """Key of the taint."""
    value: str = ""
    """Its value."""
    effect: Literal["NoSchedule", "NoExecute", "PreferNoSchedule"] = "NoSchedule"
    """What becomes of pods that do not tolerate it."""


class NodeTemplate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A node that the pool would get, as it is when nothing runs there yet."""

    slots: Annotated[int, Meta(ge=0)]
    """Slots of the node."""
    cpu: Quantity | None = None
    """Cores that pods may request, as ``15.5`` or ``15500m``; None is enough for any pod."""
    memory: Quantity | None = None
    """Memory that pods may request, as ``60Gi``; None is enough for any pod."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    """Labels of the node that pods select it by."""
    taints: tuple[TemplateTaint, ...] = ()
    """Taints of the node, those of its start excepted."""

    def __post_init__(self) -> None:
        for name in ("cpu", "memory"):
            value = getattr(self, name)
            if value is not None and quantity(value) <= 0:
                raise ValueError(f"{name}: {value!r} is no amount; write one such as 15500m or 60Gi")


class GrowthConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether and how the pool asks for nodes that it lacks."""

    deadline: Annotated[int, Meta(ge=1)] = 900
    """Seconds that the cluster may take to add the nodes of one task. Then they are not asked for any more, and the
    next task is tried."""
    max_nodes: Annotated[int, Meta(ge=0)] | None = None
    """Nodes of the pool at most, those included that are there; None leaves the limit to the autoscaler."""
    node_template: NodeTemplate | None = None
    """What a new node has. None takes nodes that are there for examples, so a pool without any does not grow."""
    autoscaler: Literal["auto", "cluster-autoscaler", "karpenter"] = "auto"
    """Who adds nodes, which decides how placeholders stay off those that are there: by names of hosts or, as Karpenter
    does not take these, by a label that the nodes get. ``auto`` is ``karpenter`` where the cluster serves its API."""
    priority_class: str = ""
    """Priority class of placeholders. Empty is ``determined-placeholder-priority``, of the value -10, where the cluster
    has it or the launcher may make it."""
    image: Annotated[str, Meta(min_length=1)] = PAUSE_IMAGE
    """Image of placeholders: a program that does nothing until it is ended."""
