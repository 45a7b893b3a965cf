"""``kubectl`` as administrators use it, with the namespace of the tests added where they would add theirs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.harness.waiting import wait_until


@dataclass(frozen=True)
class Kubectl:
    """Commands in one namespace; ``namespace`` "" for those about the cluster."""

    kubeconfig: Path
    namespace: str = ""

    def __call__(self, *arguments: str, given: str | None = None) -> str:
        """What a command printed, which must succeed; ``given`` is its standard input."""
        where = ("-n", self.namespace) if self.namespace else ()
        done = subprocess.run(
            ["kubectl", *where, *arguments],
            env=self._environment(),
            input=given,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)} ended with {done.returncode}\n{done.stderr}"
        return done.stdout

    def shell(self, line: str) -> str:
        """What a line of a shell printed, word for word as somebody types it; every part of a pipe must succeed."""
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{line} ended with {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def items(self, kind: str, selector: str = "determined") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self("get", kind, "-l", selector, "-o", "json"))["items"]
        return found

    def names(self, kind: str, selector: str = "determined") -> set[str]:
        return {item["metadata"]["name"] for item in self.items(kind, selector)}

    def apply(self, *objects: dict[str, Any]) -> None:
        self("apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}


@contextmanager
def new_namespace(kubeconfig: Path) -> Iterator[Kubectl]:
    """A namespace; it and everything in it is gone afterwards. Skips the test without ``kubectl``."""
    if shutil.which("kubectl") is None:
        pytest.skip("needs kubectl on the PATH")
    kubectl = Kubectl(kubeconfig, f"test-{uuid4().hex[:12]}")
    kubectl("create", "namespace", kubectl.namespace)
    try:
        # Pods are refused until a controller has made the account that they run as.
        wait_until(lambda: "default" in kubectl.names("serviceaccounts", ""), what="there is a service account")
        yield kubectl
    finally:
        kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
        kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
