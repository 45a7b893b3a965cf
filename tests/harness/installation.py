"""The chart installed on a cluster whose nodes run containers, by the commands that the documentation says."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import httpx

from tests.harness.client import Client
from tests.harness.helm import CHART, find_helm
from tests.harness.kubectl import Kubectl
from tests.harness.waiting import wait_until

RELEASE: Final = "det"
NAMESPACE: Final = "det"
POOLS: Final = {"here": f"{RELEASE}-tasks", "batch": "batch"}
"""Pool -> the namespace of its tasks. The chart makes that of the first; experiments run in the second."""
PATIENT: Final = {"DET_RETRY_CONFIG": '{"total": 20, "backoff_factor": 0.5, "allowed_methods": false}'}
"""What the client does where nobody configures it."""
READY_S: Final = 240.0
DEPLOYMENTS: Final = {
    "api": f"determined-master-deployment-{RELEASE}",
    "scheduler": f"resolute-scheduler-{RELEASE}",
    "logs": f"resolute-logs-{RELEASE}",
    **{f"launcher of {pool}": f"resolute-launcher-{pool}-{RELEASE}" for pool in POOLS},
}
SERVERS: Final = {"nats": f"resolute-nats-{RELEASE}", "postgres": f"determined-db-deployment-{RELEASE}"}
"""StatefulSets."""


@dataclass(frozen=True)
class Installation:
    """A release, and how people reach it.

    home    for homes of clients
    values  the values file that it is installed with
    """

    kubeconfig: Path
    home: Path
    values: Path

    @property
    def kubectl(self) -> Kubectl:
        return Kubectl(self.kubeconfig, NAMESPACE)

    @property
    def cluster(self) -> Kubectl:
        """Without a namespace."""
        return Kubectl(self.kubeconfig)

    def helm(self, *arguments: str) -> str:
        """What a command printed, which must succeed."""
        done = self.try_helm(*arguments)
        assert done.returncode == 0, f"helm {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def try_helm(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [find_helm(), *arguments, "-n", NAMESPACE, "--kubeconfig", str(self.kubeconfig)]
        return subprocess.run(command, capture_output=True, text=True, timeout=READY_S + 60, check=False)

    def install(self, *options: str, chart: Path = CHART) -> str:
        """``helm install`` as in docs/install-kubernetes.md, until all is ready. Returns the notes."""
        said = self.helm("install", RELEASE, str(chart), "--create-namespace", "-f", str(self.values), *options)
        self.wait_until_ready()
        return said

    def upgrade(self, *options: str, chart: Path = CHART) -> None:
        """``helm upgrade`` as in docs/install-kubernetes.md."""
        done = self.try_upgrade(*options, chart=chart)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"

    def try_upgrade(self, *options: str, chart: Path = CHART) -> subprocess.CompletedProcess[str]:
        return self.try_helm("upgrade", RELEASE, str(chart), "-f", str(self.values), "--wait", *options)

    def revision(self) -> int:
        """Number of the one that is installed, which ``helm rollback`` takes."""
        history: list[dict[str, Any]] = json.loads(self.helm("history", RELEASE, "--max", "1", "-o", "json"))
        return int(history[-1]["revision"])

    def shell(self, line: str) -> str:
        """What a command of the documentation prints, word for word; it must succeed."""
        return self.cluster.shell(line)

    def wait_until_ready(self) -> None:
        """There are as many pods of the release as there should be, and all are ready."""

        def all_ready() -> bool:
            workloads = self.kubectl.items("deployments,statefulsets", f"release={RELEASE}")
            ready = list(self.readiness().values())
            return all(ready) and len(ready) == sum(each["spec"]["replicas"] for each in workloads) > 0

        try:
            wait_until(all_ready, timeout_s=READY_S, every_s=1)
        except AssertionError as error:
            said = self.kubectl("get", "pods", "-o", "wide") + self.kubectl("get", "events", "--sort-by=.lastTimestamp")
            raise AssertionError(f"not all pods are ready\n{said}") from error

    def readiness(self) -> dict[str, bool]:
        """Pod -> whether it is ready; those that are ending, too, and are not."""
        found = {}
        for pod in self.kubectl.items("pods", f"release={RELEASE}"):
            conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", [])}
            is_ending = "deletionTimestamp" in pod["metadata"]
            found[pod["metadata"]["name"]] = conditions.get("Ready") == "True" and not is_ending
        return found

    def restart(self, deployment: str) -> None:
        """A rolling one, to its end."""
        rollout = f"kubectl -n {NAMESPACE} rollout"
        self.shell(f"{rollout} restart deployment/{deployment} && {rollout} status deployment/{deployment}")

    def replicas(self, deployment: str) -> int:
        """Pods of it that are ready."""
        return int(self.kubectl("get", "deployment", deployment, "-o", "jsonpath={.status.readyReplicas}"))

    def kill(self, workload: str) -> None:
        """Delete all pods of a Deployment or StatefulSet, with a second to end by themselves; more come."""
        found = [name for name in self.readiness() if name.startswith(f"{workload}-")]
        assert found, f"no pod of {workload}"
        self.kubectl("delete", "pod", *found, "--now")

    def secret(self, key: str) -> str:
        """A value of what the chart has made."""
        name = f"resolute-generated-{RELEASE}"
        escaped = key.replace(".", "\\.")
        return base64.b64decode(self.kubectl("get", "secret", name, "-o", f"jsonpath={{.data.{escaped}}}")).decode()

    @cached_property
    def notes(self) -> str:
        return self.helm("get", "notes", RELEASE)

    def run_note(self, pattern: str) -> str:
        """What the command of the notes that ``pattern`` finds prints; for an ``export``, the variable's value."""
        (line,) = [line.strip() for line in self.notes.splitlines() if re.search(pattern, line)]
        exported = re.match(r"export (\w+)=", line)
        return self.cluster.shell(f'{line}; printf %s "${exported.group(1)}"' if exported else line).strip()

    @cached_property
    def url(self) -> str:
        return self.run_note("export DET_MASTER=")

    @cached_property
    def password(self) -> str:
        """The first one of admin and determined."""
        return self.run_note(r"get secret .*initial-password")

    def det(self, name: str = "client", user: str = "determined") -> Client:
        """The unmodified client with its own retries, logged in."""
        client = Client(self.url, self.home / name, env=PATIENT)
        client("user", "login", user, answers=(self.password,))
        return client

    def http(self, user: str = "determined") -> httpx.Client:
        """Logged in."""
        body = {"username": user, "password": self.password}
        token = httpx.post(f"{self.url}/api/v1/auth/login", json=body, timeout=30).raise_for_status().json()["token"]
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
