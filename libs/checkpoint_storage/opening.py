"""Opens buckets: with the keys of the configuration, else with those that this process finds in its pod.

Keys of this process go to the cloud they belong to and nowhere else: whoever submits an experiment names its storage.
Source: docs/reference/experiments.md 1.4; docs/reference/harness-protocol.md 13.1.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from obstore.store import AzureStore, GCSStore, S3Store

from libs.checkpoint_storage.azure_accounts import AzureAccount, azure_account
from libs.checkpoint_storage.endpoints import named_by_environment, s3_endpoint
from libs.checkpoint_storage.places import bucket_and_prefix
from libs.errors import FailedPrecondition

if TYPE_CHECKING:
    from obstore.store import AzureAccessKey, AzureSASToken, ClientConfig, RetryConfig, S3Credential

Bucket = S3Store | GCSStore | AzureStore

_AMAZON: Final = "https://s3.amazonaws.com"
_LOOKS_UP_WITHIN_S: Final = 5
# A body may take as long as its reader wants; what counts is how long nothing comes.
_CLIENT: Final[ClientConfig] = {
    "allow_http": True,
    "connect_timeout": "5s",
    "read_timeout": "10s",
    "timeout": "7d",
}
_RETRIES: Final[RetryConfig] = {"max_retries": 2, "retry_timeout": timedelta(seconds=15)}


def open_bucket(
    storage: Mapping[str, Any], home: Mapping[str, Any] | None = None, *, proxy_url: str | None = None
) -> Bucket:
    """The bucket of a checkpoint_storage section, in which names are relative to its prefix; nothing is sent to it yet.

    home       the section of the cluster: keys of this process belong to its endpoint too
    proxy_url  of a proxy that makes all connections
    Raises FailedPrecondition, naming the field, for a section that leads nowhere.
    """
    client: ClientConfig = {**_CLIENT, "proxy_url": proxy_url} if proxy_url else _CLIENT
    try:
        match storage["type"]:
            case "s3":
                return _s3(storage, home or {}, client)
            case "gcs":
                return _gcs(storage, client)
            case "azure":
                return _azure(storage, client)
    except ValueError as error:
        raise FailedPrecondition(f"checkpoint_storage cannot be used: {error}") from error
    raise FailedPrecondition(f"checkpoint_storage of type {storage['type']} has no bucket")


def region_of(bucket: str, address: str = _AMAZON) -> str | None:
    """The region of a bucket of Amazon, which tells it to everybody; None when it cannot be asked."""
    request = urllib.request.Request(f"{address}/{bucket}", method="HEAD")  # noqa: S310  always https, but in tests
    try:
        with urllib.request.urlopen(request, timeout=_LOOKS_UP_WITHIN_S) as answer:  # noqa: S310
            headers = answer.headers
    except urllib.error.HTTPError as error:
        headers = error.headers
    except OSError:
        return None
    region: str | None = headers.get("x-amz-bucket-region")
    return region


@lru_cache(maxsize=256)
def _known_region(bucket: str) -> str:
    region = region_of(bucket)
    if region is None:
        raise LookupError(bucket)  # which is not remembered
    return region


def _s3(storage: Mapping[str, Any], home: Mapping[str, Any], client: ClientConfig) -> Bucket:
    bucket, prefix = bucket_and_prefix(storage)
    key, secret = storage.get("access_key"), storage.get("secret_key")
    if bool(key) != bool(secret):
        raise ValueError("access_key and secret_key are given together, or neither of them")

    def credentials() -> S3Credential:
        # Not as options: a session token in the environment would be taken along.
        return {"access_key_id": str(key), "secret_access_key": str(secret), "token": None, "expires_at": None}

    options: dict[str, Any] = {}
    if endpoint := s3_endpoint(storage):
        options["endpoint"] = endpoint
        options["skip_signature"] = not key and endpoint not in (s3_endpoint(home), *named_by_environment())
    elif not named_by_environment():
        with suppress(LookupError):  # what the environment says, or the library's default
            options["region"] = _known_region(bucket)
    return S3Store(
        bucket,
        prefix=prefix or None,
        client_options=client,
        retry_config=_RETRIES,
        credential_provider=credentials if key else None,
        **options,
    )


def _gcs(storage: Mapping[str, Any], client: ClientConfig) -> Bucket:
    bucket, prefix = bucket_and_prefix(storage)
    options: dict[str, Any] = {}
    if emulator := os.environ.get("STORAGE_EMULATOR_HOST"):  # the variable that clients of Google know
        nobody = {"client_email": "", "private_key": "", "private_key_id": "", "disable_oauth": True}
        options["service_account_key"] = json.dumps({"gcs_base_url": emulator.rstrip("/"), **nobody})
    return GCSStore(bucket, prefix=prefix or None, client_options=client, retry_config=_RETRIES, **options)


def _azure(storage: Mapping[str, Any], client: ClientConfig) -> Bucket:
    container, prefix = bucket_and_prefix(storage)
    account = azure_account(storage)
    has_own = account.access_key or account.sas_token
    return AzureStore(
        container,
        account_name=account.name,
        endpoint=account.endpoint,
        skip_signature=not has_own and not account.is_of_azure,
        prefix=prefix or None,
        client_options=client,
        retry_config=_RETRIES,
        credential_provider=_AzureKeys(account) if has_own else None,
    )


class _AzureKeys:
    def __init__(self, account: AzureAccount) -> None:
        self._account = account

    def __call__(self) -> AzureAccessKey | AzureSASToken:
        if self._account.access_key:
            return {"access_key": self._account.access_key, "expires_at": None}
        return {"sas_token": str(self._account.sas_token), "expires_at": None}
