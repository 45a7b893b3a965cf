"""A notebook is a real JupyterLab, behind the path of its task."""

from __future__ import annotations

import httpx
import pytest

from deploy.local.servers.ports import free_port
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.process.interactive.tasks import (
    ALLOCATION,
    NOTEBOOK_TOKEN,
    TASK,
    notebook,
)
from tests.integration.launcher.fakes import FakeMaster
from tests.integration.launcher.launcher_harness import LauncherHarness

pytestmark = pytest.mark.interactive


async def test_a_notebook_serves_its_path_says_that_it_is_ready_and_reports_whether_it_is_used(
    harness: LauncherHarness, master: FakeMaster
) -> None:
    port = free_port()
    await harness.run(ALLOCATION, notebook(port))
    try:
        await eventually(lambda: master.called("/ready"), timeout_s=60, what="it is ready")
    except AssertionError as error:
        raise AssertionError("\n".join(harness.printed(ALLOCATION, "stderr"))) from error
    base = f"http://127.0.0.1:{port}/proxy/{TASK}"
    async with httpx.AsyncClient(headers={"Authorization": f"token {NOTEBOOK_TOKEN}"}, timeout=30) as http:
        status = (await http.get(f"{base}/api/status")).json()
        assert status["kernels"] == 0
        page = await http.get(f"{base}/lab")
        assert page.status_code == 200
        assert f"/proxy/{TASK}/" in page.text
        assert (await http.get(f"{base}/api/contents/run/determined/workdir")).json()["content"][0]["name"] == (
            "README.ipynb"
        )
    async with httpx.AsyncClient(timeout=30) as stranger:
        assert (await stranger.get(f"{base}/api/contents")).status_code == 403
    await eventually(lambda: master.called("/report_idle"), timeout_s=60, what="it reports")
    assert master.called("/report_idle")[0] == {"idle": True}
    await harness.stop(ALLOCATION)
    ended = await harness.until_ended(ALLOCATION, timeout_s=30)
    assert ended.stopped
    assert not harness.pids(ALLOCATION)
