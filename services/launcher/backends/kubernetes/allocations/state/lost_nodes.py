"""Nodes that nobody hears of any more.

Source: https://kubernetes.io/docs/concepts/architecture/nodes/#node-status.
"""

from __future__ import annotations

from collections.abc import Mapping

from services.launcher.backends.kubernetes.client.objects import Node


class LostNodes:
    """A view of ``nodes`` (by name), which may change; None when nodes may not be seen."""

    def __init__(self, nodes: Mapping[str, Node] | None) -> None:
        self._nodes = nodes

    def words(self, name: str) -> str:
        """What is wrong with a node; empty when nothing is, or nothing can be known."""
        if self._nodes is None or not name:
            return ""
        node = self._nodes.get(name)
        if node is None:
            return f"node {name} does not exist any more"
        for condition in node.status.conditions:
            if condition.type == "Ready" and condition.status != "True":
                return f"node {name} is lost: {condition.message or condition.reason}"
        return ""
