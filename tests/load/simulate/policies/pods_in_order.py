"""Pods in the order of their creation, gangs unaware: what a cluster does without a scheduler for gangs.

Every pod is bound to a node as soon as one has room for it, whether or not the rest of its gang has. A pod that has no
room does not keep others from being bound. The job runs once all its pods are bound, and those that are bound before
hold their slots without any use. Two gangs can hold what the other one lacks for ever; nothing ends that, and such jobs
are reported as never started. Pods go where most is free, which is what the scheduler of Kubernetes prefers by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.load.simulate.engine.decisions import Begin, Bind, PolicyDecision
from tests.load.simulate.engine.state import ClusterState


class PodsInOrder:
    def plan(self, state: ClusterState, now: float) -> Iterator[PolicyDecision]:
        walk = state.waiting.walk()
        for shape in state.waiting.shapes():
            if state.free.emptiest(shape[1], shape[2]) is None:
                walk.drop(shape)
        for job in walk:
            while len(bound := state.bound.get(job.number, ())) < job.pods:
                node = state.free.emptiest(job.slots_per_pod, job.models)
                if node is None:
                    walk.drop(job.shape)
                    break
                yield Bind(job.number, node)
            else:
                yield Begin(job.number, tuple(bound))
