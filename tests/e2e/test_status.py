"""Every service tells how it is, and what stands by is as ready as what acts."""

from __future__ import annotations

import httpx

from deploy.local.configuration import plan
from deploy.local.configuration.status_ports import status_url
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem


def test_every_service_tells_that_it_is_alive_and_ready_and_what_it_counts(whole_system: WholeSystem) -> None:
    needs = {
        "api": {"bus", "database", "database storage", "http"},
        "scheduler": {"bus", "database", "database storage"},
        "launcher": {"bus"},
        "logs": {"bus", "database", "database storage", "http"},
    }
    assert needs.keys() == {*plan.SERVICES}
    for name, dependencies in needs.items():

        def page(page: str, name: str = name) -> httpx.Response:
            return httpx.get(status_url(whole_system.layout, name, page), timeout=30)

        assert page("healthz").json() == {"event_loop": "ok"}
        wait_until(lambda: page("readyz").is_success, what=f"{name} is ready")
        assert page("readyz").json() == dict.fromkeys(dependencies, "ok")
        assert "# TYPE resolute_" in page("metrics").text
