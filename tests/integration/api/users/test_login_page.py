"""The page that logs people in, in a real browser: its scripts run under its own policy."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from tests.harness.api import ApiProcess
from tests.harness.installed_client import interactive_python
from tests.harness.oidc_provider import OidcStandIn
from tests.harness.processes import REPOSITORY
from tests.integration.api.users.provider_api import api_with_provider
from tests.integration.api.world import World

pytestmark = [pytest.mark.interactive, pytest.mark.timeout(300)]

ME = "/api/v1/me"

LogIn = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def api(world: World, provider: OidcStandIn) -> Iterator[ApiProcess]:
    with api_with_provider(world, provider, "page") as api:
        yield api


@pytest.fixture(scope="module")
def log_in(api: ApiProcess) -> LogIn:
    """Takes some steps on the page of a login that was asked for at ``wanted``, and says what is seen at ``path``."""
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        pytest.skip("needs a browser: `apt-get install chromium chromium-driver`")

    def run(*steps: str, wanted: str = ME, path: str = ME) -> dict[str, Any]:
        address = f"{api.url}/det/login?redirect={quote(wanted, safe='')}"
        argv = [str(interactive_python()), "-m", "tests.e2e.interactive.login_client", address, path, *steps]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=240, cwd=REPOSITORY)
        assert done.returncode == 0, done.stderr
        seen: dict[str, Any] = json.loads(done.stdout)
        return seen

    return run


def test_a_password_leads_to_where_the_login_was_asked_for(log_in: LogIn) -> None:
    seen = log_in(
        *("type:username=determined", "type:password=wrong", "press:button", "read:#words"),
        *("type:password=", "press:button"),
        wanted=f"{ME}?from=here",
    )
    assert seen["read"] == ["This did not work: invalid credentials"]
    assert seen["address"].endswith(f"{ME}?from=here")
    assert json.loads(seen["body"])["user"]["username"] == "determined"
    cookie = seen["cookies"]["auth"]
    assert (cookie["path"], cookie["httpOnly"]) == ("/", True)


@pytest.mark.parametrize("elsewhere", ["https://evil.example.com/", "//evil.example.com/", "javascript:alert(1)"])
def test_a_login_leads_to_no_other_site(log_in: LogIn, api: ApiProcess, elsewhere: str) -> None:
    seen = log_in("type:username=determined", "press:button", wanted=elsewhere, path="/det")
    assert urlsplit(seen["address"]).netloc == urlsplit(api.url).netloc


def test_the_button_of_a_provider_leads_there_and_back(log_in: LogIn, provider: OidcStandIn) -> None:
    provider.user = {"sub": "7", "email": "browser@example.com"}
    seen = log_in("follow:Log in with Stand-in")
    assert json.loads(seen["body"])["user"]["username"] == "browser@example.com"
    assert len(provider.authorizations) == 1
    assert "auth" in seen["cookies"]
