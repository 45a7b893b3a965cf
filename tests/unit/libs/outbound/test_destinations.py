"""What an administrator allows beside public addresses, and which URLs everybody reads alike."""

from __future__ import annotations

import pytest

from libs.outbound.destinations import Authority, authority_of, destinations

URLS = [
    ("http://minio:9000", Authority("minio", 9000)),
    ("HTTP://MinIO.", Authority("minio", 80)),
    ("https://minio.data.svc/a/b?c", Authority("minio.data.svc", 443)),
    ("http://[FD00::1]:9000/", Authority("fd00::1", 9000)),
    ("http://10.0.0.1/", Authority("10.0.0.1", 80)),
    ("https://evil.example\\@a.blob.core.windows.net", None),
    ("https://evil.example/\\@a.blob.core.windows.net", None),
    ("https://s3.amazonaws.com@evil.example", None),
    ("https://s3.amazonaws.com:x@evil.example", None),
    ("https://evil.example?.s3.amazonaws.com", None),
    ("https://evil.example#.s3.amazonaws.com", None),
    ("https://evil\t.example", None),
    ("https://\uff533.amazonaws.com", None),
    ("http://h:99999", None),
    ("ftp://h", None),
    ("h:80", None),
    ("", None),
]


@pytest.mark.parametrize(("url", "expected"), URLS)
def test_host_and_port_of_a_url(url: str, expected: Authority | None) -> None:
    assert authority_of(url) == expected


def test_networks_and_hosts_are_allowed_as_they_are_named() -> None:
    allowed = destinations(("10.1.0.0/16", "http://minio.data.svc:9000"))
    assert allowed.allow(Authority("a", 80), "10.1.2.3")
    assert not allowed.allow(Authority("a", 80), "10.2.0.1")
    assert allowed.allow(Authority("minio.data.svc", 9000), "10.2.0.1")
    assert not allowed.allow(Authority("minio.data.svc", 80), "10.2.0.1")
    assert allowed.allow(Authority("a", 80), "8.8.8.8")


@pytest.mark.parametrize("text", ["minio:9000", "10.0.0.1/8", "http://user@minio", "s3://bucket"])
def test_what_is_neither_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=text):
        destinations((text,))
