"""Whether Services of the release select pods by labels that no pod of a user may bear."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from typing import Final

from deploy.operations.doctor.findings import Finding, ok, warning
from deploy.operations.doctor.tasks.kubectl import Json, NotAnswered, kubectl
from libs.cluster.config import ClusterConfig

PART: Final = "selectors of Services"
OWN: Final = "resolute/component"


def check_selectors(cluster: ClusterConfig) -> list[Finding]:
    """Nothing without a release of the chart, whose namespace its configuration says."""
    namespace = cluster.security.release_namespace
    if not namespace:
        return []
    if shutil.which("kubectl") is None:
        by_hand = f"kubectl --namespace {namespace} get services --selector determined-system --output wide"
        says = "kubectl is not at hand to see by which labels Services find pods"
        return [warning(PART, says, remedy=f"run {by_hand}: each selector should have {OWN}")]
    try:
        services = kubectl("--namespace", namespace, "get", "services", "--selector", "determined-system")
    except NotAnswered as error:
        says = f"those of {namespace} could not be looked at: {error}"
        return [warning(PART, says, remedy="see that kubectl may list Services")]
    return [about_selectors(services)]


def about_selectors(services: Iterable[Json]) -> Finding:
    """What it means that these Services select pods as they do. Pure."""
    former = sorted(
        each["metadata"]["name"] for each in services if OWN not in (each["spec"].get("selector") or {OWN: ""})
    )
    if not former:
        return ok(PART, "pods are found by labels of our own domain")
    return warning(
        PART,
        f"{', '.join(former)}: pods are found by labels from before, which users' pods may not bear either",
        remedy=f"once all pods of the release have the label {OWN}, run helm upgrade again; where the chart is "
        "rendered without a cluster, with podSelectors: own",
    )
