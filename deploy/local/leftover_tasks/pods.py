"""Finds pods that a stopped system left in a cluster, and ends them without a launcher."""

from __future__ import annotations

import warnings
from http import HTTPStatus
from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError, InsecureRequestWarning

from deploy.local.failure import CannotStart
from deploy.local.kubernetes import KubernetesOptions
from deploy.local.layout import Layout
from services.launcher.backends.kubernetes.manifests.names import ALLOCATION_LABEL, CLUSTER_LABEL


def running(layout: Layout, options: KubernetesOptions) -> list[str]:
    """Names of the Jobs that this installation has. Raises CannotStart when the cluster is away."""
    selector = _selector(layout)
    if selector is None:
        return []
    return [job.metadata.name for job in _ask(options, lambda api: _jobs(api, options, selector))]


def end(layout: Layout, options: KubernetesOptions) -> None:
    """Delete everything that carries the id of this installation, wherever its workspaces are bound to.

    Raises CannotStart when the cluster is away.
    """
    selector = _selector(layout)
    if selector is None:
        return

    def delete(api: client.ApiClient) -> None:
        for namespace in sorted(_namespaces(api, options, selector)):
            chosen: dict[str, Any] = {"namespace": namespace, "label_selector": selector}
            # Pods, Secrets and ConfigMaps of a Job go with it.
            client.BatchV1Api(api).delete_collection_namespaced_job(**chosen, propagation_policy="Background")
            client.CoreV1Api(api).delete_collection_namespaced_config_map(**chosen)
            client.CoordinationV1Api(api).delete_collection_namespaced_lease(**chosen)

    _ask(options, delete)


def forget_namespaces(layout: Layout, options: KubernetesOptions) -> None:
    """Delete the namespaces that were made for workspaces, which nobody will know of any more.

    Raises CannotStart when the cluster is away.
    """
    selector = _selector(layout)
    if selector is None:
        return

    def delete(api: client.ApiClient) -> None:
        core = client.CoreV1Api(api)
        try:
            made: list[Any] = core.list_namespace(label_selector=f"{selector},{ALLOCATION_LABEL}").items
        except ApiException as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            return  # then none was made either
        for namespace in made:
            core.delete_namespace(namespace.metadata.name)

    _ask(options, delete)


def _jobs(api: client.ApiClient, options: KubernetesOptions, selector: str) -> list[client.V1Job]:
    batch = client.BatchV1Api(api)
    everywhere = batch.list_job_for_all_namespaces, batch.list_namespaced_job
    return _everywhere(*everywhere, options.namespace, selector)


def _namespaces(api: client.ApiClient, options: KubernetesOptions, selector: str) -> set[str]:
    core = client.CoreV1Api(api)
    everywhere = core.list_config_map_for_all_namespaces, core.list_namespaced_config_map
    found = [*_jobs(api, options, selector), *_everywhere(*everywhere, options.namespace, selector)]
    return {options.namespace, *(item.metadata.namespace for item in found)}


def _everywhere(list_all: Any, list_in: Any, namespace: str, selector: str) -> list[Any]:
    """What is in all namespaces, or in the one where we may look."""
    try:
        found = list_all(label_selector=selector)
    except ApiException as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        found = list_in(namespace, label_selector=selector)
    items: list[Any] = found.items
    return items


def _selector(layout: Layout) -> str | None:
    """None before any launcher was told which installation it belongs to."""
    try:
        settings = yaml.safe_load((layout.config / "launcher.yaml").read_text())
    except FileNotFoundError:
        return None
    cluster_id = settings.get("kubernetes", {}).get("cluster_id")
    return f"{CLUSTER_LABEL}={cluster_id}" if cluster_id else None


def _ask(options: KubernetesOptions, call: Any) -> Any:
    # Whoever wrote insecure-skip-tls-verify into the kubeconfig knows.
    unwarned = warnings.catch_warnings(action="ignore", category=InsecureRequestWarning)
    try:
        with unwarned, config.new_client_from_config(options.kubeconfig) as api:  # type: ignore[no-untyped-call]
            return call(api)
    except (ApiException, HTTPError, config.ConfigException, OSError) as error:
        raise CannotStart(
            f"the cluster of {options.kubeconfig} does not answer, so what runs there is left alone: {error}"
        ) from error
