"""Paths of the API: in one namespace, and those of the cluster."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

NODES: Final = "/api/v1/nodes"
NAMESPACES: Final = "/api/v1/namespaces"
ALL_PODS: Final = "/api/v1/pods"
ALL_JOBS: Final = "/apis/batch/v1/jobs"
PRIORITY_CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
RESOURCE_GROUP: Final = "/apis/resource.k8s.io"
KARPENTER_GROUP: Final = "/apis/karpenter.sh"
VERSION: Final = "/version"

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")


def resource_slices(version: str) -> str:
    return f"{RESOURCE_GROUP}/{version}/resourceslices"


def gateway_path(namespace: str, name: str) -> str:
    return f"/apis/gateway.networking.k8s.io/v1/namespaces/{namespace}/gateways/{name}"


class Paths:
    def __init__(self, namespace: str) -> None:
        self.namespace = f"{NAMESPACES}/{namespace}"
        self.jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        self.pods = f"{self.namespace}/pods"
        self.config_maps = f"{self.namespace}/configmaps"
        self.secrets = f"{self.namespace}/secrets"
        self.services = f"{self.namespace}/services"
        self.events = f"{self.namespace}/events"
        self.tcp_routes = f"/apis/gateway.networking.k8s.io/v1alpha2/namespaces/{namespace}/tcproutes"
        self.quotas = f"{self.namespace}/resourcequotas"
        self.network_policies = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
        self.leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    def job(self, name: str) -> str:
        return f"{self.jobs}/{name}"

    def pod(self, name: str) -> str:
        return f"{self.pods}/{name}"

    def config_map(self, name: str) -> str:
        return f"{self.config_maps}/{name}"

    def quota(self, name: str) -> str:
        return f"{self.quotas}/{name}"


@lru_cache(maxsize=1024)
def paths_in(namespace: str) -> Paths:
    return Paths(namespace)


def may_be_namespace(name: str) -> bool:
    """Whether a namespace can have this name, so that it may be part of a path."""
    return _LABEL.fullmatch(name) is not None


def may_be_node(name: str) -> bool:
    return _SUBDOMAIN.fullmatch(name) is not None
