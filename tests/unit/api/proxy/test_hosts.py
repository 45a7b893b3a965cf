from __future__ import annotations

import pytest

from libs.cluster.config import TasksConfig
from services.api.proxy.pages.hosts import HostRole, Hosts, VisitedHost

ONE = Hosts(TasksConfig())
TWO = Hosts(TasksConfig(address="https://tasks.det.example.com", main_address="https://det.example.com/"))
LOOPBACK = ("http://localhost:8080", "http://127.0.0.1:8080")
CONFIGURED = (("https://det.example.com",), "https://tasks.det.example.com")


@pytest.mark.parametrize(
    ("hosts", "headers", "expected"),
    [
        (ONE, {"host": "localhost:8080"}, VisitedHost(HostRole.MAIN, LOOPBACK, "http://tasks.localhost:8080")),
        (ONE, {"host": "127.0.0.1:8080"}, VisitedHost(HostRole.MAIN, LOOPBACK, "http://tasks.localhost:8080")),
        (ONE, {"host": "[::1]:8080"}, VisitedHost(HostRole.MAIN, LOOPBACK, "http://tasks.localhost:8080")),
        (ONE, {"host": "Tasks.LocalHost:8080"}, VisitedHost(HostRole.TASKS, LOOPBACK, "http://tasks.localhost:8080")),
        (ONE, {"host": "det.example.com"}, VisitedHost(HostRole.BOTH)),
        (ONE, {}, VisitedHost(HostRole.BOTH)),
        (TWO, {"host": "det.example.com"}, VisitedHost(HostRole.MAIN, *CONFIGURED)),
        (TWO, {"host": "10.1.2.3:8080"}, VisitedHost(HostRole.MAIN, *CONFIGURED)),
        (TWO, {"host": "tasks.det.example.com:443"}, VisitedHost(HostRole.TASKS, *CONFIGURED)),
        (
            TWO,
            {"host": "inner", "x-forwarded-host": "tasks.det.example.com, inner"},
            VisitedHost(HostRole.TASKS, *CONFIGURED),
        ),
        (TWO, {"host": "localhost:8080"}, VisitedHost(HostRole.MAIN, LOOPBACK, "http://tasks.localhost:8080")),
        (TWO, {"host": "eviltasks.det.example.com"}, VisitedHost(HostRole.MAIN, *CONFIGURED)),
    ],
)
def test_where_a_request_came_to(hosts: Hosts, headers: dict[str, str], expected: VisitedHost) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    assert hosts.place(raw, scheme="http", by_proxy=False) == expected
    assert hosts.is_of_tasks(raw) == (expected.role is HostRole.TASKS)


def test_certificates_of_loopback_names_have_no_other() -> None:
    assert ONE.place([(b"host", b"localhost:8443")], scheme="https", by_proxy=False) == VisitedHost(HostRole.BOTH)


def test_the_host_that_a_proxy_says_may_be_of_its_own_machine() -> None:
    assert ONE.place([(b"host", b"localhost:8080")], scheme="http", by_proxy=True) == VisitedHost(HostRole.BOTH)
