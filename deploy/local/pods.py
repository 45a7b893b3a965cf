"""Tasks of a stopped system that are pods of a cluster: which are left, and how to end them without a launcher."""

from __future__ import annotations

from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from deploy.local.failure import CannotStart
from deploy.local.kubernetes import KubernetesOptions
from deploy.local.layout import Layout
from services.launcher.backends.kubernetes.spec.names import CLUSTER_LABEL


def running(layout: Layout, options: KubernetesOptions) -> list[str]:
    """Names of the Jobs that this installation has in its namespace. Raises CannotStart when the cluster is away."""
    selector = _selector(layout)
    if selector is None:
        return []
    jobs = _ask(
        options, lambda api: client.BatchV1Api(api).list_namespaced_job(options.namespace, label_selector=selector)
    )
    return [job.metadata.name for job in jobs.items]


def end(layout: Layout, options: KubernetesOptions) -> None:
    """Delete everything that carries the id of this installation. Raises CannotStart when the cluster is away."""
    selector = _selector(layout)
    if selector is None:
        return

    def delete(api: client.ApiClient) -> None:
        chosen: dict[str, Any] = {"namespace": options.namespace, "label_selector": selector}
        # Pods, Secrets and ConfigMaps of a Job go with it.
        client.BatchV1Api(api).delete_collection_namespaced_job(**chosen, propagation_policy="Background")
        client.CoreV1Api(api).delete_collection_namespaced_config_map(**chosen)

    _ask(options, delete)


def _selector(layout: Layout) -> str | None:
    """None before any launcher was told which installation it belongs to."""
    try:
        settings = yaml.safe_load((layout.config / "launcher.yaml").read_text())
    except FileNotFoundError:
        return None
    cluster_id = settings.get("kubernetes", {}).get("cluster_id")
    return f"{CLUSTER_LABEL}={cluster_id}" if cluster_id else None


def _ask(options: KubernetesOptions, call: Any) -> Any:
    try:
        with config.new_client_from_config(options.kubeconfig) as api:  # type: ignore[no-untyped-call]
            return call(api)
    except (ApiException, HTTPError, config.ConfigException, OSError) as error:
        raise CannotStart(
            f"the cluster of {options.kubeconfig} does not answer, so what runs there is left alone: {error}"
        ) from error
