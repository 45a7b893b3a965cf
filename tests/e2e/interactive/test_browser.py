"""What a browser shows: JupyterLab at the address of a notebook, a chart in a TensorBoard."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, unquote_plus, urlsplit

import pytest

from tests.e2e.interactive.test_tensorboards import trained
from tests.e2e.interactive.users import User
from tests.harness.installed_client import interactive_python
from tests.harness.processes import REPOSITORY

pytestmark = [pytest.mark.interactive, pytest.mark.timeout(300)]

LOOK = Path(__file__).with_name("browser_client.py")


def look(user: User, address: str, selector: str, auth: str = "") -> dict[str, Any]:
    """What is at an address, once the selector is found there."""
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        pytest.skip("needs a browser: `apt-get install chromium chromium-driver`")
    printed = user.program(str(interactive_python()), str(LOOK), address, selector, "60", auth)
    seen: dict[str, Any] = json.loads(printed)
    return seen


def of_tasks(user: User) -> str:
    """The address of the pages of tasks, for whoever comes by a loopback name."""
    return f"http://tasks.localhost:{urlsplit(user.system.url).port}"


LAB = ".jp-LauncherCard[data-category='Notebook']"


def test_the_addresses_of_a_notebook_show_jupyterlab_to_whoever_has_them(user: User) -> None:
    """Nobody is logged in: a link that is opened in a browser has a token, and a cookie takes its place."""
    printed = user.det("notebook", "start", "--no-browser", "--config", "resources.slots=0")
    [task] = re.findall(r"Launched notebook \(id: ([0-9a-f-]{36})", printed)
    [printed_address] = re.findall(r"Jupyter Notebook is running at: (\S+?)(?:\x1b\[0m)?\n", printed)
    wrapped = urlsplit(printed_address).path.rpartition("/")[2]
    for address in (
        f"{user.system.url}{user.shown('notebook', task)['serviceAddress']}",
        printed_address,
        f"{user.system.url}{unquote_plus(wrapped)}",
    ):
        seen = look(user, address, LAB)
        assert seen["found"], seen
        assert "JupyterLab" in seen["title"]
        assert seen["address"].startswith(f"{of_tasks(user)}/proxy/{task}/lab")
        assert seen["cookies"]["proxy_token"] == f"/proxy/{task}/"
        assert "auth" not in seen["cookies"]
    user.det("notebook", "kill", task)
    user.wait_until_ended(task)


def test_a_page_of_a_notebook_reaches_its_kernel_under_the_host_name_of_tasks(user: User) -> None:
    task = user.open_when_ready("notebook", "--config", "resources.slots=0")
    for auth in ("", user.system.token()):
        address = f"{user.system.url}{user.shown('notebook', task)['serviceAddress']}"
        client = (str(interactive_python()), "-m", "tests.e2e.interactive.kernel_page_client")
        done = subprocess.run(
            [*client, address, auth, "print(6 * 7)"], cwd=REPOSITORY, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert json.loads(done.stdout) == {"status": 201, "text": "42\n", "origin": of_tasks(user)}
    user.kill("notebook", task)


def test_a_link_to_a_notebook_that_starts_leads_there_when_it_is_ready(user: User) -> None:
    task = user.start("notebook", "--config", "resources.slots=0", "--config", "description=a notebook (new)")
    service = user.shown("notebook", task)["serviceAddress"]
    wait = quote_plus(
        f"/det/wait/jupyter-lab/{task}?eventUrl={service}/jupyter-lab/{task}/events&serviceAddr={service}"
    )
    path = f"/det/interactive/{task}/jupyter-lab/a%20notebook%20%28new%29/default/{wait}?currentSlotsExceeded=false"
    seen = look(user, f"{user.system.url}{path}", LAB, user.system.token())
    assert seen["found"], seen
    assert seen["address"].startswith(f"{of_tasks(user)}/proxy/{task}/lab")
    user.kill("notebook", task)


def test_a_tensorboard_shows_a_chart_to_whoever_is_logged_in(user: User) -> None:
    task = user.open_when_ready("tensorboard", "--no-browser", str(trained(user)))
    address = f"{user.system.url}/proxy/{task}/#timeseries"
    seen = look(user, address, "scalar-card line-chart svg path, scalar-card line-chart canvas", user.system.token())
    assert seen["found"], seen
    assert "loss" in seen["text"]
    user.kill("tensorboard", task)
