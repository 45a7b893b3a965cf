"""What a launcher is told of the room that it holds for a task, from what the pods of the task require (pure)."""

from __future__ import annotations

from typing import Any

from libs.events.orders import PlaceholderOrder
from services.scheduler.plan.decisions import Grow
from services.scheduler.plan.nodes.requirements import PodRequirements
from services.scheduler.plan.nodes.selectors import SelectorRequirement, SelectorTerm
from services.scheduler.plan.nodes.taints import Toleration


def placeholder_order(pool: str, grow: Grow, needs: PodRequirements | None) -> PlaceholderOrder:
    """``needs`` is None where nothing is known of the pods but their slots."""
    needs = needs or PodRequirements()
    return PlaceholderOrder(
        pool=pool,
        allocation=grow.allocation,
        pods=grow.pods,
        requests=dict(needs.requests),
        node_selector=dict(needs.node_selector),
        affinity_terms=None if needs.affinity is None else tuple(_term(each) for each in needs.affinity),
        tolerations=tuple(_toleration(each) for each in needs.tolerations),
        known_nodes=tuple(sorted(grow.known_nodes)),
        gives_up_at=grow.gives_up_at,
    )


def _term(term: SelectorTerm) -> dict[str, Any]:
    parts = {"matchExpressions": term.labels, "matchFields": term.fields}
    return {name: [_requirement(each) for each in requirements] for name, requirements in parts.items() if requirements}


def _requirement(requirement: SelectorRequirement) -> dict[str, Any]:
    found: dict[str, Any] = {"key": requirement.key, "operator": requirement.operator}
    return {**found, "values": list(requirement.values)} if requirement.values else found


def _toleration(toleration: Toleration) -> dict[str, str]:
    parts = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
    }
    return {name: value for name, value in parts.items() if value}
