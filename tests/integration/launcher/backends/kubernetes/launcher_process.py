"""The launcher of a harness as a process of its own, which can be killed as processes are."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.harness.processes import ServiceProcess
from tests.integration.launcher.backends.kubernetes.launcher_harness import CLUSTER_ID, POOL, LauncherHarness


def service(harness: LauncherHarness, bus_url: str, directory: Path, **env: str) -> ServiceProcess:
    """Not started yet; its log is ``launcher.log`` in ``directory``, and ``env`` overrides its settings."""
    cluster = directory / "cluster.yaml"
    cluster.write_bytes(msgspec.yaml.encode(harness.cluster))
    return ServiceProcess(
        "services.launcher.main",
        log_path=directory / "launcher.log",
        env={
            "RESOLUTE_POOL": POOL,
            "RESOLUTE_BACKEND": "kubernetes",
            "RESOLUTE_BUS__URL": bus_url,
            "RESOLUTE_CLUSTER_CONFIG": str(cluster),
            "RESOLUTE_KUBERNETES__KUBECONFIG": str(harness.settings.kubeconfig),
            "RESOLUTE_KUBERNETES__CLUSTER_ID": CLUSTER_ID,
            "RESOLUTE_KUBERNETES__NAMESPACE": harness.namespace.name,
            "RESOLUTE_LOOP__ABSENCE_GRACE_S": "0",
            "RESOLUTE_TASKS__LOG_INTAKE_URL": "http://logs:8090",
            **env,
        },
    )
