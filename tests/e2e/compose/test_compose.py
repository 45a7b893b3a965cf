"""``docker compose up``, from images built here; the client is outside, and reaches what is published."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.harness.compose import ComposeProject, base_image
from tests.harness.det import Det
from tests.harness.processes import REPOSITORY
from tests.harness.waiting import wait_until

pytestmark = [pytest.mark.compose, pytest.mark.timeout(1800)]

SERVICES = {"api", "scheduler", "launcher", "logs", "nats", "postgres"}
RETURNS_WITHIN_S = 180.0
"""Longer than a service waits for another that was killed as well."""


@pytest.fixture(scope="module")
def project() -> Iterator[ComposeProject]:
    project = ComposeProject(f"resolute-{uuid4().hex[:8]}", base_image())
    project("build")
    try:
        project("up", "--detach", "--wait")
        yield project
    finally:
        project("down", "--volumes")


def client(project: ComposeProject, home: Path) -> Det:
    """Whoever runs the demo. An api that Docker has started again may be on another port than before."""
    return Det(url=project.master_url, home=home, env={"DET_USER": "determined", "DET_PASS": project.password})


def test_everything_is_ready_when_up_returns(project: ComposeProject, tmp_path: Path) -> None:
    assert set(project.services()) == SERVICES
    assert "launcher" in client(project, tmp_path)("agent", "list").out


def test_the_demo_runs_against_it(project: ComposeProject) -> None:
    demo = subprocess.run(
        [sys.executable, "-m", "deploy.local.demo", "--master", project.master_url],
        cwd=REPOSITORY,
        env={**os.environ, "DET_USER": "determined", "DET_PASS": project.password},
        capture_output=True,
        text=True,
        check=False,
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "best accuracy: 0.9" in demo.stdout


def test_what_is_killed_comes_back_with_all_it_stored(project: ComposeProject, tmp_path: Path) -> None:
    before = {service: project.state(service)["RestartCount"] for service in SERVICES}
    for service in SERVICES:
        project.kill(service)

    def are_back() -> bool:
        counts = {service: project.state(service)["RestartCount"] for service in SERVICES}
        return all(counts[each] > before[each] and project.is_healthy(each) for each in SERVICES)

    wait_until(are_back, timeout_s=RETURNS_WITHIN_S, every_s=1, what="all have been started again, and are ready")
    assert "COMPLETED" in client(project, tmp_path)("experiment", "list").out


def test_each_ends_by_itself_when_it_is_stopped(project: ComposeProject) -> None:
    """Docker kills what does not."""
    project("stop")
    assert {service: project.state(service)["ExitCode"] for service in SERVICES} == dict.fromkeys(SERVICES, 0)


def test_down_leaves_nothing_behind(project: ComposeProject) -> None:
    project("down", "--volumes")
    assert project.left() == []
