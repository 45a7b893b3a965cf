"""``det checkpoint``: what it shows, and what it says of what is not there."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.harness.api import ApiProcess
from tests.harness.det import Det
from tests.integration.api.models.registry import new_checkpoint
from tests.integration.api.world import World

MISSING = "00000000-0000-4000-8000-000000000000"
COMMANDS = (
    ("checkpoint", "describe", MISSING),
    ("checkpoint", "download", MISSING),
    ("checkpoint", "download", MISSING, "--mode", "master"),
    ("checkpoint", "delete", MISSING, "--yes"),
    ("checkpoint", "rm", MISSING),
    ("checkpoint", "rm", MISSING, "--glob", "*.pt", "--yes"),
)


def test_checkpoints_are_described_and_deleted(det: Det, admin: httpx.Client, world: World) -> None:
    experiment, uuid = new_checkpoint(world)
    described = det("checkpoint", "describe", uuid).out
    for part in (uuid, str(experiment), "0.25", "torch"):
        assert part in described
    listed = det("experiment", "list-checkpoints", str(experiment), "--csv").out.splitlines()
    assert listed[0].startswith("Trial ID,# of Batches,State,Validation Metric,UUID")
    assert uuid in listed[1]
    assert "refreshing resources" in det("checkpoint", "rm", uuid).out
    assert "Removal of files" in det("checkpoint", "rm", uuid, "--glob", "*.pt", "--yes").out
    assert "Deletion of checkpoints" in det("checkpoint", "delete", uuid, "--yes").out
    assert "Stopping deletion" in det("checkpoint", "delete", uuid, answers=["n"]).out
    refused = det.fails("checkpoint", "rm", uuid, "--glob", "../x", "--yes")
    assert "glob '../x' cannot contain '..'" in refused.err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_is_not_there_is_said(det: Det, command: tuple[str, ...]) -> None:
    ended = det.fails(*command)
    assert f"'{MISSING}' not found" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_without_a_login(api: ApiProcess, tmp_path: Path, command: tuple[str, ...]) -> None:
    ended = Det(url=api.url, home=tmp_path, username="ghost").fails(*command, answers=["wrong"])
    assert "Unauthenticated" in ended.err
    assert "Traceback" not in ended.err
