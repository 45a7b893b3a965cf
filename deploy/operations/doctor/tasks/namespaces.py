"""Namespaces of tasks: whether services of a release are in one, and which networks of the cluster to close to tasks.

Both are looked for with kubectl, where it is at hand.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Final

from deploy.operations.doctor.findings import Finding, ok, problem, warning
from deploy.operations.doctor.tasks.kubectl import Json, NotAnswered, kubectl
from libs.cluster.config import ClusterConfig

PART: Final = "namespace of tasks"
NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""By which network policies of tasks know the namespace of a release."""
NETWORKS: Final = "networks of the cluster"
_AROUND: Final = {4: 24, 6: 64}
"""Length of the prefix that is taken around an address whose network nobody tells."""

Network = IPv4Network | IPv6Network


def check_tasks_namespaces(cluster: ClusterConfig) -> list[Finding]:
    """Nothing where tasks are no pods."""
    if cluster.resource_manager.type != "kubernetes":
        return []
    default = cluster.resource_manager.default_namespace
    pools: dict[str, list[str]] = {}
    for pool in cluster.resource_pools:
        pools.setdefault(pool.kubernetes_namespace or default, []).append(pool.pool_name)
    if shutil.which("kubectl") is None:
        by_hand = " and ".join(
            f"kubectl --namespace {each} get deployments --selector determined-system" for each in pools
        )
        says = "kubectl is not at hand to see whether tasks run beside services"
        return [warning(PART, says, remedy=f"run {by_hand}: nothing should be found")]
    looked_at = [_look(namespace, names) for namespace, names in sorted(pools.items())]
    return [*looked_at, *_names_of_namespaces(), _networks()]


def _look(namespace: str, pools: Sequence[str]) -> Finding:
    try:
        found = kubectl("--namespace", namespace, "get", "deployments", "--selector", "determined-system")
    except NotAnswered as error:
        return warning(
            PART, f"{namespace} could not be looked at: {error}", remedy="see that kubectl may list Deployments"
        )
    return about_services(namespace, pools, [each["metadata"]["name"] for each in found])


def about_services(namespace: str, pools: Sequence[str], services: Sequence[str]) -> Finding:
    """What it means that these Deployments of a release are where tasks of these pools run. Pure."""
    whose = ", ".join(pools)
    if not services:
        return ok(PART, f"{namespace} ({whose}) has no services in it")
    says = (
        f"tasks of {whose} run in {namespace} beside {len(services)} Deployments of services, {services[0]} "
        "among them: pod specs of users can name the Secrets, claims and service accounts there"
    )
    return problem(PART, says, remedy="move tasks into a namespace of their own (docs/move-tasks.md)")


def _names_of_namespaces() -> list[Finding]:
    try:
        services = kubectl("get", "deployments", "--all-namespaces", "--selector", "determined-system")
        return about_names(kubectl("get", "namespaces"), {each["metadata"]["namespace"] for each in services})
    except NotAnswered as error:
        remedy = "see that kubectl may list namespaces, and Deployments in all of them"
        return [warning(PART, f"labels of namespaces could not be looked at: {error}", remedy=remedy)]


def about_names(namespaces: Iterable[Json], with_services: Collection[str]) -> list[Finding]:
    """What it means for network policies of tasks which labels namespaces have. Pure."""
    nameless = [each["metadata"]["name"] for each in namespaces if not _names_itself(each["metadata"])]
    return [
        problem(
            PART,
            f"{name} has no label {NAME_LABEL}, as in Kubernetes before 1.21: network policies of tasks let nothing "
            "through to the services in it",
            remedy=f"kubectl label namespace {name} {NAME_LABEL}={name}",
        )
        for name in nameless
        if name in with_services
    ]


def _names_itself(found: Json) -> bool:
    return bool((found.get("labels") or {}).get(NAME_LABEL) == found["name"])


def _networks() -> Finding:
    try:
        ranges = proposed_ranges(
            nodes=kubectl("get", "nodes"),
            pods=kubectl("get", "pods", "--all-namespaces"),
            services=kubectl("get", "services", "--all-namespaces"),
            service_ranges=kubectl("get", "servicecidrs", may_be_missing=True),
            endpoints=kubectl("--namespace", "default", "get", "endpoints"),
        )
    except NotAnswered as error:
        return warning(NETWORKS, f"could not be found out: {error}", remedy="see that kubectl may list nodes and pods")
    return ok(NETWORKS, f"networkPolicy.tasks.closed of the chart may be {json.dumps(ranges)}")


def proposed_ranges(
    *,
    nodes: Iterable[Json],
    pods: Iterable[Json],
    services: Iterable[Json],
    service_ranges: Iterable[Json],
    endpoints: Iterable[Json],
) -> dict[str, list[str]]:
    """Ranges to close to tasks, by what has addresses in them. Pure.

    Where the cluster tells no range, one is taken around each address that is in use: look whether it is large enough.
    """
    nodes, pods = list(nodes), list(pods)
    known: dict[str, list[Network]] = {
        "pods": _ranges(each for node in nodes for each in node["spec"].get("podCIDRs", ())),
        "services": _ranges(each for found in service_ranges for each in found["spec"]["cidrs"]),
        "nodes": _around(
            each["address"]
            for node in nodes
            for each in node["status"].get("addresses", ())
            if each["type"] == "InternalIP"
        ),
    }
    own = (pod for pod in pods if not pod["spec"].get("hostNetwork"))
    known["pods"] = _more(known["pods"], (each["ip"] for pod in own for each in pod["status"].get("podIPs", ())))
    known["services"] = _more(
        known["services"],
        (each for found in services for each in found["spec"].get("clusterIPs", ()) if each != "None"),
    )
    server = [
        ip_network(address["ip"])
        for found in endpoints
        if found["metadata"]["name"] == "kubernetes"
        for subset in found.get("subsets", ())
        for address in subset.get("addresses", ())
    ]
    covered = [network for networks in known.values() for network in networks]
    known["apiServer"] = [each for each in server if not _is_in(each, covered)]
    return {name: [str(network) for network in networks] for name, networks in known.items()}


def _ranges(texts: Iterable[str]) -> list[Network]:
    networks = [ip_network(text) for text in texts]
    collapsed: list[Network] = []
    for version in (4, 6):
        collapsed += collapse_addresses(each for each in networks if each.version == version)  # type: ignore[type-var]
    return collapsed


def _around(addresses: Iterable[str]) -> list[Network]:
    single = [ip_network(address) for address in addresses]
    return _ranges(str(each.supernet(new_prefix=_AROUND[each.version])) for each in single)


def _more(networks: list[Network], addresses: Iterable[str]) -> list[Network]:
    outside = [address for address in addresses if not _is_in(ip_network(address), networks)]
    return _ranges(str(each) for each in (*networks, *_around(outside)))


def _is_in(network: Network, others: Iterable[Network]) -> bool:
    return any(network.version == other.version and network.subnet_of(other) for other in others)  # type: ignore[arg-type]
