"""URLs that webhooks may lead to."""

from __future__ import annotations

import pytest

from libs.outbound.addresses import networks
from libs.webhooks.addresses import problem_of_url, refused_literal


@pytest.mark.parametrize(
    "url",
    ["", "x", "ftp://a/", "file:///etc/passwd", "http://", "http://a:b/", "http://a:99999/", "http://a b/", "//a"],
)
def test_what_is_no_url(url: str) -> None:
    assert problem_of_url(url) == "valid url required"


@pytest.mark.parametrize("url", ["http://a.example", "https://u:p@a.example:8443/x?y=z", "http://[::1]/"])
def test_what_is_a_url(url: str) -> None:
    assert problem_of_url(url) is None


def test_private_address_in_a_url_is_known_at_once() -> None:
    assert refused_literal("http://10.0.0.1/x", ()) == "10.0.0.1"
    assert refused_literal("http://[::1]:80/x", ()) == "::1"
    assert refused_literal("http://10.0.0.1/x", networks(("10.0.0.0/8",))) is None
    assert refused_literal("http://localhost/x", ()) is None
