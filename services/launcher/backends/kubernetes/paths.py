"""Paths of the API, in one namespace."""

from __future__ import annotations

from typing import Final

NODES: Final = "/api/v1/nodes"
ALL_PODS: Final = "/api/v1/pods"
PRIORITY_CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
VERSION: Final = "/version"


class Paths:
    def __init__(self, namespace: str) -> None:
        self.namespace = f"/api/v1/namespaces/{namespace}"
        self.jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        self.pods = f"{self.namespace}/pods"
        self.config_maps = f"{self.namespace}/configmaps"
        self.secrets = f"{self.namespace}/secrets"
        self.services = f"{self.namespace}/services"
        self.events = f"{self.namespace}/events"
        self.quotas = f"{self.namespace}/resourcequotas"

    def job(self, name: str) -> str:
        return f"{self.jobs}/{name}"

    def pod(self, name: str) -> str:
        return f"{self.pods}/{name}"
