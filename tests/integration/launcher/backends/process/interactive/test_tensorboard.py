"""A TensorBoard is a real one, started by the client over the files of a storage."""

from __future__ import annotations

import subprocess
from pathlib import Path

import httpx
import pytest

from deploy.local.servers.ports import free_port
from libs.events.orders import BindMount
from tests.harness.installed_client import interactive_python
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.process.interactive.tasks import ALLOCATION, TASK, tensorboard
from tests.integration.launcher.fakes import FakeMaster
from tests.integration.launcher.launcher_harness import LauncherHarness

pytestmark = pytest.mark.interactive

WRITE_EVENTS = """
import sys
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter(sys.argv[1])
for step in range(1, 4):
    value = Summary.Value(tag="loss", simple_value=1.0 / step)
    writer.add_event(Event(step=step, wall_time=step, summary=Summary(value=[value])))
writer.close()
"""


def write_events(directory: Path) -> None:
    """What a trial leaves behind: three values of ``loss``."""
    directory.mkdir(parents=True, exist_ok=True)
    subprocess.run([interactive_python(), "-c", WRITE_EVENTS, str(directory)], check=True, capture_output=True)


async def test_a_tensorboard_waits_for_metrics_and_then_shows_them(
    harness: LauncherHarness, master: FakeMaster, tmp_path: Path
) -> None:
    port = free_port()
    storage = tmp_path / "storage"
    storage.mkdir()
    mount = BindMount(host_path=str(storage), container_path="/determined_shared_fs")
    config = {"type": "shared_fs", "host_path": str(storage)}
    log_dir = "/determined_shared_fs/cluster/tensorboard/experiment/1/"
    await harness.run(ALLOCATION, tensorboard(port, config, log_dir, bind_mounts=(mount,)))
    try:
        await eventually(lambda: master.called("/waiting"), timeout_s=60, what="it waits")
        assert not master.called("/ready")
        write_events(storage / "cluster/tensorboard/experiment/1/trial/1")
        await eventually(lambda: master.called("/ready"), timeout_s=60, what="it is ready")
    except AssertionError as error:
        raise AssertionError("\n".join(harness.printed(ALLOCATION, "stderr"))) from error
    assert len(master.called("/waiting")) == 1
    async with httpx.AsyncClient(timeout=30) as http:
        tags = (await http.get(f"http://127.0.0.1:{port}/proxy/{TASK}/data/plugin/scalars/tags")).json()
    assert [list(values) for values in tags.values()] == [["loss"]]
    await harness.stop(ALLOCATION)
    await harness.until_ended(ALLOCATION, timeout_s=30)
    assert not harness.pids(ALLOCATION)
