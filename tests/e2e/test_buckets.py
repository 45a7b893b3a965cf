"""The life of a checkpoint in a bucket, through the unmodified client and harness: saved, downloaded, deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from libs.checkpoint_storage.files import BucketFiles
from tests.harness.bucket_servers import KINDS, BucketServer, bucket_server
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem, running_system
from tests.programs import submit

pytestmark = pytest.mark.slow

WRITTEN = {"weights", "code/train.py", "metadata.json"}


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[BucketServer]:
    with bucket_server(request.param) as found, pytest.MonkeyPatch.context() as patch:
        for name, value in found.variables.items():
            patch.setenv(name, value)  # of the api, and of what looks here
        yield found


@pytest.fixture(scope="module")
def system(server: BucketServer) -> Iterator[WholeSystem]:
    with running_system(slots=1) as found:
        yield found


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def trained(system: WholeSystem, look: Looking, section: dict[str, Any], variables: list[str]) -> tuple[int, str]:
    """An experiment that has saved a checkpoint, and its UUID."""
    environment = {"environment_variables": variables}
    experiment = submit(system.det(), "saving.py", checkpoint_storage=section, environment=environment)
    look.wait(experiment)
    (checkpoint,) = look.get(f"/experiments/{experiment}/checkpoints")["checkpoints"]
    return experiment, str(checkpoint["uuid"])


@pytest.mark.timeout(900)
def test_life_of_a_checkpoint(system: WholeSystem, server: BucketServer, tmp_path: Path) -> None:
    det, section = system.det(), dict(server.section)
    with system.http() as http:
        look = Looking(http)
        variables = [f"{name}={value}" for name, value in server.variables.items()]
        experiment, uuid = trained(system, look, section, variables)

        for mode in ("master", "direct"):
            if mode == "direct" and server.variables:
                continue  # the client of these tests gets no variables
            det("checkpoint", "download", uuid, "--mode", mode, "--output-dir", str(tmp_path / mode))
            assert files_in(tmp_path / mode) == WRITTEN
            assert (tmp_path / mode / "weights").read_bytes() == bytes(3_000_000)

        def checkpoint() -> dict[str, Any]:
            found: dict[str, Any] = look.get(f"/checkpoints/{uuid}")["checkpoint"]
            return found

        det("checkpoint", "rm", uuid, "--glob", "code/*.py", "--yes")
        wait_until(lambda: checkpoint()["state"] == "STATE_PARTIALLY_DELETED", timeout_s=180)
        assert set(checkpoint()["resources"]) == {"weights", "code/", "metadata.json"}
        det("checkpoint", "download", uuid, "--mode", "master", "--output-dir", str(tmp_path / "rest"))
        assert files_in(tmp_path / "rest") == WRITTEN - {"code/train.py"}

        det("checkpoint", "delete", uuid, "--yes")
        wait_until(lambda: checkpoint()["state"] == "STATE_DELETED", timeout_s=180)
        assert list(BucketFiles(section, uuid).listed()) == []
        refused = http.get(f"/checkpoints/{uuid}")
        assert (refused.status_code, refused.json()["message"]) == (
            400,
            f"the files of checkpoint '{uuid}' are deleted",
        )

        cluster = look.get("/master")["clusterId"]
        events = BucketFiles(section, f"{cluster}/tensorboard/experiment/{experiment}")
        assert any("tfevents" in file.path for file in events.listed())
        det("experiment", "delete", str(experiment), "--yes")
        wait_until(lambda: http.get(f"/api/v1/experiments/{experiment}").status_code == 404, timeout_s=180)
        assert list(events.listed()) == []
