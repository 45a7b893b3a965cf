"""``det auth login``, with a browser that logs in by itself."""

from __future__ import annotations

import fcntl
import socket
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.harness.api import ApiProcess
from tests.harness.det import Det
from tests.harness.oidc_provider import OidcStandIn
from tests.harness.waiting import wait_until
from tests.integration.api.users.provider_api import api_with_provider
from tests.integration.api.world import World

PORT_OF_CLIENT = 49176
BROWSER = f"""
import sys, time, urllib.error, urllib.request
from http.cookiejar import CookieJar

class Follow(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, request, file, code, message, headers, url):
        if url.startswith("http://localhost:{PORT_OF_CLIENT}"):
            ended.append(url)
            return None
        return super().redirect_request(request, file, code, message, headers, url)

ended = []
direct, cookies = urllib.request.ProxyHandler({{}}), urllib.request.HTTPCookieProcessor(CookieJar())
opener = urllib.request.build_opener(direct, Follow, cookies)
try:
    opener.open(sys.argv[1], timeout=30)
except urllib.error.HTTPError:
    pass
[url] = ended
url = url.replace(":{PORT_OF_CLIENT}?", ":{PORT_OF_CLIENT}/?")
for _ in range(300):  # the client listens when the browser is already open
    try:
        urllib.request.build_opener(direct).open(url, timeout=30)
        break
    except urllib.error.URLError:
        time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def api(world: World, provider: OidcStandIn) -> Iterator[ApiProcess]:
    with api_with_provider(world, provider, "oidc") as api:
        yield api


@pytest.fixture
def stranger(api: ApiProcess, provider: OidcStandIn, tmp_path: Path) -> Det:
    """Somebody who has not logged in yet, and whose browser does that at the provider."""
    provider.user = {"sub": "1", "email": f"{uuid4().hex}@example.com"}
    script = tmp_path / "browser.py"
    script.write_text(textwrap.dedent(BROWSER))
    return Det(url=api.url, home=tmp_path / "home", env={"BROWSER": f"{sys.executable} {script} %s &"})


@pytest.fixture
def port_of_client() -> Iterator[None]:
    """The client knows no other, so that one test of this machine at a time can have it.

    Connections that go out are given such ports too, and keep them for a minute after their end. A socket
    that is bound and does not listen keeps new ones away, and leaves the port to the client.
    """
    with Path(f"/tmp/resolute-test-port-{PORT_OF_CLIENT}.lock").open("w") as lock, socket.socket() as kept:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        wait_until(lambda: _bound(kept), timeout_s=120, what=f"port {PORT_OF_CLIENT}")
        yield


def _bound(kept: socket.socket) -> bool:
    try:
        kept.bind(("127.0.0.1", PORT_OF_CLIENT))
    except OSError:
        return False
    return True


@pytest.mark.usefixtures("port_of_client")
def test_a_browser_brings_the_token_to_the_client(stranger: Det, provider: OidcStandIn) -> None:
    assert stranger("auth", "list-providers").out == "Available providers: Stand-in.\n"
    username = provider.user["email"]
    assert f"Authenticated as {username}." in stranger("auth", "login", "--provider", "stand-in", timeout_s=60).out
    assert username in stranger("user", "whoami").out
    assert "unsupported" in stranger("auth", "login", "--provider", "Another").out
