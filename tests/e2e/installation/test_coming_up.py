"""``helm install`` of two pools in two namespaces, and the demo on it through the Service of the api."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.harness.client import Client
from tests.harness.installation import POOLS, RELEASE, Installation
from tests.harness.looking import Looking
from tests.harness.processes import REPOSITORY
from tests.programs import submit

pytestmark = [pytest.mark.installation, pytest.mark.timeout(600)]


def test_what_the_notes_say_leads_to_a_system_that_is_ready(installation: Installation, det: Client) -> None:
    shown = installation.run_note(r"get pods -l release=").splitlines()[1:]
    assert len(shown) == 7
    assert all(" 1/1 " in line and " Running " in line for line in shown)
    for pool in POOLS:
        assert pool in det("agent", "list")
    admin = installation.det("admin", "admin")
    assert RELEASE in installation.helm("list", "--short").split()
    assert "determined" in admin("user", "list")


def test_each_pool_runs_its_tasks_in_its_namespace(installation: Installation, det: Client, look: Looking) -> None:
    # Pods of tasks have no token of the API server, beside which the name would be.
    where = {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
    environment = {"pod_spec": {"spec": {"containers": [{"name": "determined-container", "env": [where]}]}}}
    for pool, namespace in POOLS.items():
        resources = {"slots_per_trial": 1, "resource_pool": pool}
        experiment = submit(det, 'echo "$NAMESPACE"', resources=resources, environment=environment)
        look.wait(experiment)
        assert namespace in look.printed(look.trial(experiment)["id"])


def test_the_demo_runs_as_pods(installation: Installation, det: Client) -> None:
    """The unmodified client, through the address of the notes."""
    done = subprocess.run(
        [sys.executable, "-m", "deploy.local.demo", "--master", installation.url, "--pods"],
        cwd=REPOSITORY,
        env={**os.environ, "DET_USER": "determined", "DET_PASS": installation.password},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "best accuracy: 0.9" in done.stdout
