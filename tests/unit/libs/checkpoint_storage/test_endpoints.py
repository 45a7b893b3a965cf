"""Which endpoints are named by users, and which belong to the clouds."""

from __future__ import annotations

from typing import Any

import pytest

from libs.checkpoint_storage.endpoints import field_of, named_endpoint, of_administrators
from libs.outbound.destinations import Authority

Object = dict[str, Any]

NAMED: list[tuple[Object, str | None]] = [
    ({"type": "s3", "bucket": "b"}, None),
    ({"type": "s3", "endpoint_url": None}, None),
    ({"type": "s3", "endpoint_url": "http://minio:9000/"}, "http://minio:9000"),
    ({"endpoint_url": "http://minio:9000"}, "http://minio:9000"),
    ({"type": "s3", "endpoint_url": "https://s3.amazonaws.com"}, None),
    ({"type": "s3", "endpoint_url": "https://s3.eu-west-1.amazonaws.com"}, None),
    ({"type": "s3", "endpoint_url": "https://s3.dualstack.us-gov-west-1.amazonaws.com"}, None),
    ({"type": "s3", "endpoint_url": "https://s3-fips.us-east-1.amazonaws.com/"}, None),
    ({"type": "s3", "endpoint_url": "http://s3.amazonaws.com"}, "http://s3.amazonaws.com"),
    (
        {"type": "s3", "endpoint_url": "https://b.vpce-1.s3.us-east-1.vpce.amazonaws.com"},
        "https://b.vpce-1.s3.us-east-1.vpce.amazonaws.com",
    ),
    (
        {"type": "s3", "endpoint_url": "https://ec2-1.eu-west-1.compute.amazonaws.com"},
        "https://ec2-1.eu-west-1.compute.amazonaws.com",
    ),
    ({"type": "s3", "endpoint_url": "https://evil\\@s3.amazonaws.com"}, "https://evil\\@s3.amazonaws.com"),
    ({"type": "gcs", "bucket": "b"}, None),
    ({"type": "shared_fs", "host_path": "/"}, None),
    ({"type": "azure", "account_url": "https://a.blob.core.windows.net"}, None),
    ({"type": "azure", "account_url": "http://a.blob.core.windows.net"}, "http://a.blob.core.windows.net"),
    ({"account_url": "http://10.0.0.1/a"}, "http://10.0.0.1/a"),
    (
        {"type": "azure", "account_url": "https://evil\\@a.blob.core.windows.net"},
        "https://evil\\@a.blob.core.windows.net",
    ),
    (
        {"type": "azure", "connection_string": "AccountName=a;AccountKey=k;EndpointSuffix=evil.example"},
        "https://a.blob.evil.example",
    ),
    (
        {"type": "azure", "connection_string": "AccountName=evil/?;AccountKey=k"},
        "https://evil/?.blob.core.windows.net",
    ),
    ({"type": "azure", "connection_string": "UseDevelopmentStorage=true"}, "http://127.0.0.1:10000/devstoreaccount1"),
    ({"type": "azure", "connection_string": "AccountName=a;AccountKey=k"}, None),
    ({"type": "azure", "connection_string": "nonsense"}, None),
]


@pytest.mark.parametrize(("storage", "expected"), NAMED)
def test_endpoint_that_a_section_names(storage: Object, expected: str | None) -> None:
    assert named_endpoint(storage) == expected


def test_hosts_of_administrators(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://ceph/")
    home = {"type": "s3", "endpoint_url": "http://MinIO:9000"}
    assert of_administrators(home) == {Authority("ceph", 80), Authority("minio", 9000)}
    assert of_administrators({}) == {Authority("ceph", 80)}


def test_field_that_is_named_in_a_refusal() -> None:
    assert field_of({"account_url": "http://a"}) == "account_url"
    assert field_of({"connection_string": "x"}) == "connection_string"
    assert field_of({"endpoint_url": "http://a", "connection_string": None}) == "endpoint_url"
