"""Image pull secrets that pod specs of the cluster configuration name, looked for with kubectl where it is at hand."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from typing import Any, Final

from deploy.operations.doctor.findings import Finding, ok, problem, warning
from libs.cluster.checks import POD_SPECS
from libs.cluster.config import ClusterConfig

PART: Final = "image pull secret"
ANSWERS_WITHIN_S: Final = 10.0


def check_pull_secrets(cluster: ClusterConfig) -> list[Finding]:
    return [_look(namespace, name) for namespace, name in sorted(set(named_secrets(cluster)))]


def named_secrets(cluster: ClusterConfig) -> Iterator[tuple[str, str]]:
    """Namespace and name of each that pods of a pool would need. Pure."""
    for pool in cluster.resource_pools:
        namespace = pool.kubernetes_namespace or cluster.resource_manager.default_namespace
        defaults = cluster.defaults_of(pool.pool_name)
        for kind in POD_SPECS:
            pod: dict[str, Any] = getattr(defaults, kind) or {}
            for secret in (pod.get("spec") or {}).get("imagePullSecrets") or ():
                yield namespace, secret["name"]


def _look(namespace: str, name: str) -> Finding:
    argv = ["kubectl", "--namespace", namespace, "get", "secret", name, "--output", "name"]
    by_hand = f"run: {' '.join(argv[:6])}"
    if shutil.which(argv[0]) is None:
        return warning(PART, f"{name} is needed in {namespace}, and kubectl is not at hand", remedy=by_hand)
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=ANSWERS_WITHIN_S)
    if done.returncode == 0:
        return ok(PART, f"{name} is in {namespace}")
    if "NotFound" in done.stderr:
        remedy = f"run: kubectl --namespace {namespace} create secret docker-registry {name} ..."
        return problem(PART, f"{name} is not in {namespace}: pods wait for their image", remedy=remedy)
    return warning(PART, f"{name} in {namespace} could not be looked for: {done.stderr.strip()}", remedy=by_hand)
