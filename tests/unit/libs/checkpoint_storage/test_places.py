"""Where a checkpoint_storage section leads, and in which words that hold no secret."""

from __future__ import annotations

from typing import Any

import pytest

from libs.checkpoint_storage.azure_accounts import azure_account
from libs.checkpoint_storage.places import bucket_and_prefix, describe

MINIO = {"type": "s3", "bucket": "b", "access_key": "K", "secret_key": "S", "endpoint_url": "http://u:pw@minio:9000/"}


@pytest.mark.parametrize(
    ("storage", "place"),
    [
        ({"type": "s3", "bucket": "b", "prefix": "/a//./b/", "endpoint_url": None}, "s3://b/a/b"),
        (MINIO, "s3://b at http://minio:9000"),
        ({"type": "gcs", "bucket": "b", "prefix": None}, "gs://b"),
        ({"type": "azure", "container": "c", "account_url": "https://a.host/?sig=X"}, "azure://c at https://a.host"),
        ({"type": "azure", "container": "c/d/", "connection_string": "?"}, "azure://c/d"),
        ({"type": "shared_fs", "host_path": "/a", "storage_path": "b"}, "shared_fs /a/b"),
        ({"type": "directory", "container_path": "/a"}, "directory /a"),
    ],
)
def test_places_in_words(storage: dict[str, Any], place: str) -> None:
    assert describe(storage) == place


@pytest.mark.parametrize("prefix", [None, "", "/", ".", "./"])
def test_no_prefix(prefix: str | None) -> None:
    assert bucket_and_prefix({"type": "s3", "bucket": "b", "prefix": prefix}) == ("b", "")


OF_MICROSOFT = "https://n.blob.core.windows.net"
SIGNED = "BlobEndpoint=https://n.h/;SharedAccessSignature=sv=1&sig=x"


@pytest.mark.parametrize(
    ("storage", "endpoint", "key", "signature"),
    [
        (
            {"connection_string": "AccountName=n;AccountKey=k==;EndpointSuffix=s.net"},
            "https://n.blob.s.net",
            "k==",
            None,
        ),
        ({"connection_string": "AccountName=n;AccountKey=k=="}, OF_MICROSOFT, "k==", None),
        ({"connection_string": SIGNED}, "https://n.h", None, "sv=1&sig=x"),
        ({"account_url": f"{OF_MICROSOFT}/", "credential": "k=="}, OF_MICROSOFT, "k==", None),
        ({"account_url": "https://n.h?sv=1&sig=x"}, "https://n.h", None, "sv=1&sig=x"),
        ({"account_url": "https://n.h", "credential": "?sv=1&sig=x"}, "https://n.h", None, "sv=1&sig=x"),
        ({"account_url": "http://127.0.0.1:1/n"}, "http://127.0.0.1:1/n", None, None),
    ],
)
def test_azure_accounts(storage: dict[str, Any], endpoint: str, key: str | None, signature: str | None) -> None:
    account = azure_account(storage)
    assert (account.name, account.endpoint, account.access_key, account.sas_token) == ("n", endpoint, key, signature)


@pytest.mark.parametrize(
    ("url", "is_of_azure"),
    [
        ("https://n.blob.core.windows.net", True),
        ("http://n.blob.core.windows.net", False),
        ("https://n.blob.core.windows.net.elsewhere.org", False),
        ("https://elsewhere.org/n.blob.core.windows.net", False),
    ],
)
def test_tokens_of_the_service_go_to_azure_only(url: str, is_of_azure: bool) -> None:
    assert azure_account({"account_url": url}).is_of_azure is is_of_azure


@pytest.mark.parametrize(
    ("storage", "field"),
    [
        ({"connection_string": "nothing of it"}, "connection_string"),
        ({"connection_string": "AccountName=n"}, "connection_string"),
        ({"account_url": "n.blob.core.windows.net"}, "account_url"),
    ],
)
def test_accounts_that_cannot_be(storage: dict[str, Any], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        azure_account(storage)
