"""The network policy of an allocation: what its pods reach, and who reaches them.

They reach the api, the log intake, name servers, one another, and the world outside of the cluster; they are reached by
the api, which leads users to them, and by one another. The world outside is every address that is in none of the ranges
that the settings close. Source: https://kubernetes.io/docs/concepts/services-networking/network-policies/.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any, Final

from services.launcher.backends.kubernetes.manifests.names import ALLOCATION_LABEL, LAUNCHER_LABEL
from services.launcher.backends.kubernetes.settings import TaskNetworkSettings

Json = dict[str, Any]

EVERYWHERE: Final = ("0.0.0.0/0", "::/0")


def network_policy(settings: TaskNetworkSettings, *, name: str, namespace: str, labels: Mapping[str, str]) -> Json:
    """The policy, without its owner.

    labels  of the objects of the allocation; two of them select its pods
    """
    own = {"podSelector": {"matchLabels": {key: labels[key] for key in (ALLOCATION_LABEL, LAUNCHER_LABEL)}}}
    services = [*settings.api, *settings.log_intake]
    egress: list[Json] = [{"ports": [_port(port, kind) for port in settings.dns_ports for kind in ("UDP", "TCP")]}]
    if services:
        egress.append({"to": services, "ports": [_port(port, "TCP") for port in settings.service_ports]})
    egress += [{"to": [own]}, {"to": [_outside(of, settings.closed) for of in EVERYWHERE]}, *settings.egress]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {
            **own,
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [own, *settings.api]}, *settings.ingress],
            "egress": egress,
        },
    }


def _port(port: int, protocol: str) -> Json:
    return {"port": port, "protocol": protocol}


def _outside(everything: str, closed: tuple[str, ...]) -> Json:
    version = ip_network(everything).version
    block: Json = {"cidr": everything}
    if excepted := [each for each in closed if ip_network(each).version == version]:
        block["except"] = excepted
    return {"ipBlock": block}
