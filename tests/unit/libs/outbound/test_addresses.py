"""Addresses that users may name."""

from __future__ import annotations

import pytest

from libs.outbound.addresses import is_allowed, networks

PRIVATE = [
    "127.0.0.1",
    "127.8.8.8",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fd00::1",
    "ff02::1",
    "::ffff:10.0.0.1",
    "::10.0.0.1",
    "64:ff9b::a00:1",
    "2002:a00:1::",
    "64:ff9b:1::1",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_private_address_is_refused(address: str) -> None:
    assert not is_allowed(address, ())


@pytest.mark.parametrize("address", ["8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8"])
def test_public_address_is_allowed(address: str) -> None:
    assert is_allowed(address, ())


def test_network_is_allowed_that_the_configuration_names() -> None:
    allowed = networks(("10.1.0.0/16", "::1"))
    assert is_allowed("10.1.2.3", allowed)
    assert is_allowed("::ffff:10.1.2.3", allowed)
    assert is_allowed("::1", allowed)
    assert not is_allowed("10.2.0.1", allowed)
