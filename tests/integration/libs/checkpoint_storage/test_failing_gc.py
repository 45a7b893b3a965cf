"""Checkpoint GC, as the client's program does it, in storage that is away, full or refuses: it fails, says why in the
log of its task, and reports nothing as deleted."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from deploy.local.servers.ports import free_port
from libs.cluster.config import TaskContainerDefaults
from libs.tasks.checkpoint_gc import checkpoint_gc_task
from tests.harness.installed_client import client_python
from tests.integration.libs.checkpoint_storage.test_failing_servers import answering, section


def collect(url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the task that deletes a checkpoint there."""
    task = checkpoint_gc_task(
        experiment_id=1, config={}, storage=section(url), checkpoints=["u-1"], defaults=TaskContainerDefaults()
    )
    for file in task.files:
        (folder / file.path).parent.mkdir(exist_ok=True)
        (folder / file.path).write_bytes(file.content)
    argv = [arg.replace("/run/determined", str(folder)) for arg in task.argv]
    settings = {
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "DET_MASTER": f"http://127.0.0.1:{free_port()}",
    }
    command = [str(client_python()), "-m", "determined.exec.gc_checkpoints", *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=settings)


@pytest.mark.parametrize(
    ("status", "code"),
    [(403, "AccessDenied"), (404, "NoSuchBucket"), (503, "SlowDown"), (507, "XMinioStorageFull")],
)
def test_files_that_cannot_be_deleted_are_not_reported_as_deleted(tmp_path: Path, status: int, code: str) -> None:
    with answering(status, code) as url:
        done = collect(url, tmp_path)
    said = done.stdout + done.stderr
    assert done.returncode == 1
    assert code in said
    assert "patch_checkpoints" not in said
    assert "most secret" not in said


def test_storage_that_is_away_fails_the_task(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = collect(url, tmp_path)
    assert done.returncode == 1
    assert f"port={url.rpartition(':')[2]}" in done.stderr
    assert "Connection refused" in done.stderr
    assert "patch_checkpoints" not in done.stderr
