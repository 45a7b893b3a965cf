"""Keeps as many placeholders of a pool as its order says, and no others.

Everything is read anew from the cluster each time, and names follow from the order: whoever comes after a launcher that
was killed goes on where it was, and what nobody ordered is removed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import structlog

from libs.clock import Clock
from libs.cluster.growth import GrowthConfig
from libs.events.orders import PlaceholderOrder
from libs.telemetry import gauge
from services.launcher.backends.kubernetes.client.api import KubeApi, Refused
from services.launcher.backends.kubernetes.client.objects import ApiGroup, ListOf, Named, Node, SlimPod
from services.launcher.backends.kubernetes.client.paths import KARPENTER_GROUP, NODES, paths_in
from services.launcher.backends.kubernetes.manifests.names import HOSTNAME, PLACEHOLDER_LABEL
from services.launcher.backends.kubernetes.placeholders.manifest import (
    KNOWN_NODE_LABEL,
    PlaceholderTraits,
    names,
    placeholder_pod,
)

log = structlog.get_logger()

_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_EXISTS: Final = 409

PLACEHOLDERS: Final = gauge(
    "resolute_launcher_placeholders", "Pods that hold room on nodes which the cluster is asked for", "pool", "state"
)


class Placeholders:
    """
    namespaces      where placeholders may be; new ones are in the first
    nodes           those that are seen, by name
    priority_class  finds the class of placeholders, from the one that is configured
    """

    def __init__(
        self,
        api: KubeApi,
        *,
        traits: PlaceholderTraits,
        config: GrowthConfig | None,
        namespaces: Sequence[str],
        nodes: Callable[[], Mapping[str, Node] | None],
        priority_class: Callable[[str], Awaitable[str | None]],
        clock: Clock,
    ) -> None:
        self._api = api
        self._traits = traits
        self._config = config
        self._namespaces = namespaces
        self._nodes = nodes
        self._priority_class = priority_class
        self._clock = clock
        self._by_label: bool | None = None
        """Whether nodes that are there get a label; None while nobody has looked."""

    async def hold(self, order: PlaceholderOrder | None) -> None:
        """Make it so that there are the placeholders of ``order`` and no others. Raises Refused and Unavailable."""
        if order is not None and (self._config is None or order.gives_up_at <= self._clock.now()):
            order = None
        wanted = names(order, self._traits) if order is not None else []
        found = await self._remove_others(set(wanted))
        self._count(found)
        missing = [name for name in wanted if name not in found]
        if order is None or self._config is None or not missing:
            return
        hosts = await self._keep_off(order, self._config)
        priority_class = await self._priority_class(self._config.priority_class)
        for name in missing:
            pod = placeholder_pod(
                order, self._traits, name=name, hosts=hosts, priority_class=priority_class, now=self._clock.now()
            )
            try:
                await self._api.create(paths_in(self._namespaces[0]).pods, pod, Named)
            except Refused as error:
                if error.code != _EXISTS:
                    raise
        log.info("placeholders.made", allocation=order.allocation, count=len(missing), priority_class=priority_class)

    async def _remove_others(self, wanted: set[str]) -> dict[str, SlimPod]:
        """The placeholders that are wanted and there; all others are deleted."""
        kept: dict[str, SlimPod] = {}
        for number, namespace in enumerate(self._namespaces):
            for pod in await self._listed(namespace):
                name = pod.metadata.name
                # One that has ended, as on a node that was taken away, is made anew.
                if not number and name in wanted and pod.status.phase not in ("Succeeded", "Failed"):
                    kept[name] = pod
                else:
                    await self._api.delete(paths_in(namespace).pod(name), {"gracePeriodSeconds": 0})
                    log.info("placeholders.removed", namespace=namespace, name=name)
        return kept

    async def _listed(self, namespace: str) -> tuple[SlimPod, ...]:
        query = {"labelSelector": f"{PLACEHOLDER_LABEL}={self._traits.launcher}"}
        try:
            found = await self._api.get(paths_in(namespace).pods, ListOf[SlimPod], query)
        except Refused as error:
            if namespace != self._namespaces[0] and error.code in (_FORBIDDEN, _NOT_FOUND):
                return ()  # where the pool was before, its launcher may have no rights any more
            raise
        return tuple(found.items or ())

    async def _keep_off(self, order: PlaceholderOrder, config: GrowthConfig) -> list[str] | None:
        """Names of the hosts that new placeholders must not be on; None where the nodes have a label that says so."""
        seen = self._nodes() or {}
        known = [seen[name] for name in order.known_nodes if name in seen]
        if not await self._labels_nodes(config):
            return [node.metadata.labels.get(HOSTNAME) or node.metadata.name for node in known]
        for node in known:
            if KNOWN_NODE_LABEL not in node.metadata.labels:
                await self._api.patch(f"{NODES}/{node.metadata.name}", {"metadata": {"labels": {KNOWN_NODE_LABEL: ""}}})
        return None

    async def _labels_nodes(self, config: GrowthConfig) -> bool:
        if config.autoscaler != "auto":
            return config.autoscaler == "karpenter"
        if self._by_label is None:
            try:
                await self._api.get(KARPENTER_GROUP, ApiGroup)
            except Refused as error:
                if error.code not in (_FORBIDDEN, _NOT_FOUND):
                    raise
                self._by_label = False
            else:
                self._by_label = True
        return self._by_label

    def _count(self, found: Mapping[str, SlimPod]) -> None:
        bound = sum(bool(pod.spec.node_name) for pod in found.values())
        PLACEHOLDERS.labels(self._traits.pool, "bound").set(bound)
        PLACEHOLDERS.labels(self._traits.pool, "waiting").set(len(found) - bound)
