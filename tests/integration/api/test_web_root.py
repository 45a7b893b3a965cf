"""``web.root`` of the cluster configuration: a built page in place of the pages that the api has below ``/det``."""

from __future__ import annotations

import httpx

from tests.integration.api.world import CLUSTER, World

TASKS = {"Host": "tasks.localhost:8080"}


def test_a_built_page_takes_the_place_of_our_own(world: World) -> None:
    root = world.directory / "page"
    root.mkdir()
    (root / "index.html").write_text("built by somebody")
    path = world.directory / "web-root.yaml"
    path.write_text(f"{CLUSTER}web: {{root: {root}}}\n")
    with world.api("web-root", cluster_config=str(path)) as api, httpx.Client(base_url=api.url, timeout=30) as browser:
        led = browser.get("/", follow_redirects=True)
        assert (led.url.path, led.text) == ("/det", "built by somebody")
        for page in (
            "/det/login",
            "/det/interactive/1/jupyter-lab/x/y/z",
            "/det/wait/jupyter-lab/1",
            "/det/experiments",
        ):
            answer = browser.get(page)
            assert (answer.status_code, answer.text) == (200, "built by somebody"), page
        assert browser.get("/det/login", headers=TASKS).status_code == 404, "where pages of tasks are, nothing else is"
        assert browser.get("/info").is_success
        with api.client() as client:
            assert client.get("/api/v1/me").json()["user"]["username"] == "admin"


def test_without_one_our_own_pages_are_there(world: World) -> None:
    with world.api("no-web-root") as api, httpx.Client(base_url=api.url, timeout=30) as browser:
        assert "Log in" in browser.get("/det/login").text
        assert "The REST interface" in browser.get("/det/anything").text
