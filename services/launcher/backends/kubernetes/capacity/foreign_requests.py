"""Sums of what pods of others request on each node, kept up to date pod by pod.

A large cluster has a hundred thousand of them, too many to add up at every look.
"""

from __future__ import annotations

from libs.podspec.pod_requests import Requests, container_requests, pod_requests
from services.launcher.backends.kubernetes.client.objects import Container, SlimPod

PODS = "pods"


class ForeignRequests:
    def __init__(self) -> None:
        self._by_pod: dict[str, tuple[str, Requests]] = {}
        """Uid -> node, and what the pod requests there."""
        self._by_node: dict[str, Requests] = {}

    def note(self, pod: SlimPod) -> None:
        """A pod as it is now; it counts from when it has a node until it has ended."""
        self.forget(pod)
        node = pod.spec.node_name
        if not node or pod.status.phase in ("Succeeded", "Failed"):
            return
        requests = requests_of(pod)
        self._by_pod[pod.metadata.uid] = (node, requests)
        self._add(node, requests, sign=1)

    def forget(self, pod: SlimPod) -> None:
        """A pod is gone."""
        node, requests = self._by_pod.pop(pod.metadata.uid, ("", {}))
        if node:
            self._add(node, requests, sign=-1)

    def on(self, node: str) -> Requests:
        """The sum on a node, ``pods`` included, without what is nothing."""
        return dict(self._by_node.get(node, {}))

    def _add(self, node: str, requests: Requests, *, sign: int) -> None:
        total = self._by_node.setdefault(node, {})
        for name, amount in requests.items():
            total[name] = total.get(name, 0) + sign * amount
            if not total[name]:
                del total[name]
        if not total:
            del self._by_node[node]


def requests_of(pod: SlimPod) -> Requests:
    """Of the whole pod, and one of ``pods``."""
    containers = [_of_container(each) for each in pod.spec.containers]
    starting = [(_of_container(each), each.restart_policy == "Always") for each in pod.spec.init_containers]
    return {**pod_requests(containers, starting, pod.spec.overhead or {}), PODS: 1}


def _of_container(container: Container) -> Requests:
    return container_requests(container.resources.requests or {}, container.resources.limits or {})
