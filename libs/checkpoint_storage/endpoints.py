"""Endpoints that a checkpoint_storage section names, as opposed to those of the clouds and of administrators.

Source: docs/reference/experiments.md 1.4.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from libs.checkpoint_storage.azure_accounts import azure_account
from libs.outbound.destinations import Authority, authority_of

_OF_AMAZON: Final = re.compile(
    r"s3(-fips)?([.-]dualstack)?([.-][a-z]{2}(-[a-z]+)+-[0-9]+)?\.amazonaws\.com(\.cn)?", re.ASCII
)
"""Names that Amazon gives to S3 itself; those of customers, as for PrivateLink, end in the same domain."""
_VARIABLES: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
FIELDS: Final = ("endpoint_url", "connection_string", "account_url")
"""Fields of a section that name an address."""


def s3_endpoint(storage: Mapping[str, Any]) -> str:
    """``endpoint_url`` without a slash at its end; empty is Amazon's, or that of the environment."""
    return str(storage.get("endpoint_url") or "").rstrip("/")


def named_by_environment() -> list[str]:
    """Endpoints that whoever gave this process its keys named with them."""
    named = (os.environ.get(name, "") for name in _VARIABLES)
    return [endpoint.rstrip("/") for endpoint in named if endpoint]


def named_endpoint(storage: Mapping[str, Any]) -> str | None:
    """The URL that a section leads to; None where that is the cloud's own, or where it is none.

    The section may be a part of one, without its type.
    """
    kind = storage.get("type")
    if kind in (None, "s3") and (endpoint := s3_endpoint(storage)):
        found = authority_of(endpoint)
        is_amazon = endpoint.startswith("https://") and found is not None and _OF_AMAZON.fullmatch(found.host)
        return None if is_amazon else endpoint
    if kind not in (None, "azure"):
        return None
    try:
        account = azure_account(storage)
    except ValueError:
        return None
    return None if account.is_of_azure else account.endpoint


def of_administrators(home: Mapping[str, Any]) -> frozenset[Authority]:
    """Hosts that the configuration of the cluster and the environment of this process name.

    home  the checkpoint_storage section of the cluster; may be empty
    """
    urls = (named_endpoint(home), *named_by_environment())
    return frozenset(found for url in urls if url and (found := authority_of(url)) is not None)


def field_of(storage: Mapping[str, Any]) -> str:
    """The field that names the endpoint."""
    return next((field for field in FIELDS if storage.get(field)), FIELDS[0])


def refusal(field: str, to: Authority, path: str = "checkpoint_storage") -> str:
    """What whoever named a private address is told."""
    return f"{path}.{field}: {to} is a private address; an administrator can allow it with security.storage_addresses"
