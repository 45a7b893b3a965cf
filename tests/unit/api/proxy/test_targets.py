"""A task decides nothing about where the proxy connects to, except which of its own addresses it is."""

from __future__ import annotations

import pytest

from libs.events.observations import Address, ObservedPod
from services.api.proxy.targets import Target, target_of


def pod(*addresses: str, gateway: Address | None = None) -> ObservedPod:
    proxied = () if gateway is None else (gateway,)
    return ObservedPod(name="pod", state="RUNNING", addresses=addresses, proxied=proxied)


GATEWAY = Address(container_ip="10.9.9.9", container_port=8888, host_ip="gateway.example", host_port=30001)


@pytest.mark.parametrize(
    ("reported", "pods", "expected"),
    [
        (None, [pod("10.0.0.1")], None),
        ("10.0.0.1", [], None),
        ("10.0.0.1", [pod()], None),
        ("10.0.0.1", [pod("10.0.0.1")], Target("10.0.0.1", 8888)),
        ("10.0.0.2", [pod("10.0.0.1"), pod("10.0.0.2", "fd00::2")], Target("10.0.0.2", 8888)),
        ("fd00:0:0::2", [pod("10.0.0.2", "fd00::2")], Target("fd00:0:0::2", 8888)),
        ("Localhost", [pod("localhost")], Target("Localhost", 8888)),
        ("10.0.0.3", [pod("10.0.0.1")], None),
        ("127.0.0.1", [pod("10.0.0.1")], None),
        ("database", [pod("10.0.0.1")], None),
        ("10.0.0.1 ", [pod("10.0.0.1")], None),
        (None, [pod("10.0.0.1", gateway=GATEWAY)], Target("gateway.example", 30001)),
        ("10.0.0.1", [pod("10.0.0.1", gateway=GATEWAY)], Target("gateway.example", 30001)),
    ],
)
def test_where_a_port_is_reached(reported: str | None, pods: list[ObservedPod], expected: Target | None) -> None:
    assert target_of(8888, reported=reported, pods=pods) == expected


def test_the_gateway_of_one_port_leads_to_no_other() -> None:
    assert target_of(9999, reported=None, pods=[pod("10.0.0.1", gateway=GATEWAY)]) is None


@pytest.mark.parametrize(
    ("host", "expected"), [("10.0.0.1", "10.0.0.1:80"), ("fd00::2", "[fd00::2]:80"), ("h", "h:80")]
)
def test_an_address_in_a_url(host: str, expected: str) -> None:
    assert Target(host, 80).authority == expected
