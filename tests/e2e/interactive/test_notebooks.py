"""A notebook through the unmodified client and the proxy: started, opened, computed in, killed."""

from __future__ import annotations

import re
import time

import httpx
import pytest
from websockets.sync.client import connect

from tests.e2e.interactive.users import User

pytestmark = [pytest.mark.interactive, pytest.mark.timeout(300)]


def test_a_notebook_from_its_start_to_its_end(user: User) -> None:
    printed = user.det(
        "notebook", "start", "--no-browser", "--config", "resources.slots=0", "--config", "description=lab"
    )
    [task] = re.findall(r"Launched notebook \(id: ([0-9a-f-]{36})", printed)
    address = re.findall(r"Connect to remote Jupyter server: (\S+)", printed)[0].removesuffix("\x1b[0m")
    assert f"/det/interactive/{task}/jupyter-lab/" in printed
    assert "Service of lab is available" in user.log(task)

    kernel = user.kernel(task)
    assert kernel.run("print(6 * 7)") == "42"
    assert kernel.run("1 / 0") == "ZeroDivisionError: division by zero"
    assert (
        kernel.run("import os; print(os.getcwd(), os.environ['DET_TASK_TYPE'])") == "/run/determined/workdir NOTEBOOK"
    )
    assert kernel.run("import subprocess; print(subprocess.run(['det', 'user', 'whoami']).returncode)").endswith("0")
    kernel.close()

    page = httpx.get(address, follow_redirects=True, timeout=30)
    assert page.status_code == 200
    assert f"/proxy/{task}/" in page.text
    # The login of the platform opens the path; what is in it is for who has the token of the notebook.
    asked = user.http.get(f"/proxy/{task}/lab")
    assert (asked.status_code, asked.headers["location"].split("?")[0]) == (302, f"/proxy/{task}/login")
    assert user.http.get(f"/proxy/{task}/", follow_redirects=True).status_code == 200
    assert httpx.get(f"{user.system.url}/proxy/{task}/lab", timeout=30).status_code == 401

    assert f'"{task}"' in user.det("notebook", "list", "--json")
    assert "description: lab" in user.det("notebook", "config", task)
    user.det("notebook", "kill", task)
    user.wait_until_ended(task)
    assert user.exit_status("notebook", task) == "allocation exited successfully"
    ended = user.det.run("notebook", "open", task)
    assert ended.code == 1
    assert "Notebook has ended" in ended.err


def test_an_idle_notebook_ends_and_one_that_is_used_does_not(user: User) -> None:
    options = ("--config", "resources.slots=0", "--config", "idle_timeout=35s")
    idle, busy, watched = (user.open_when_ready("notebook", *options) for _ in range(3))
    kernel = user.kernel(busy)
    assert kernel.run("print(1)") == "1"
    kernel.close()
    # A websocket over which nothing is said, as of a page that somebody has open; no kernel runs there.
    address = f"{user.system.url}{user.shown('notebook', watched)['serviceAddress']}".replace("http", "ws", 1)
    with connect(address.replace("/?", "/api/events/subscribe?")):
        user.wait_until_ended(idle, timeout_s=120)
        assert "idle for more than 35s" in user.log(idle)
        time.sleep(15)  # longer than the others are older
        assert user.task(busy).get("endTime") is None
        assert user.task(watched).get("endTime") is None
    user.wait_until_ended(watched, timeout_s=120)
    assert "idle for more than 35s" in user.log(watched)
    user.kill("notebook", busy)
