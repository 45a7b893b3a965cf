"""Azure accounts: which address and keys a connection string, or an account URL with a credential, stands for. Pure.

Source: https://learn.microsoft.com/azure/storage/common/storage-configure-connection-string;
docs/reference/experiments.md 1.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from libs.outbound.destinations import authority_of

_EMULATOR_NAME: Final = "devstoreaccount1"
# Of every emulator, and published with it.
_EMULATOR_KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_OF_AZURE: Final = (
    ".core.windows.net",
    ".core.chinacloudapi.cn",
    ".core.usgovcloudapi.net",
    ".core.cloudapi.de",
)


class AzureAccount(Struct, frozen=True, kw_only=True):
    """How one account is reached; with neither key nor signature, by what the process itself has."""

    name: str
    endpoint: str
    access_key: str | None = None
    sas_token: str | None = None

    @property
    def is_of_azure(self) -> bool:
        """Whether the address is Microsoft's, so that it may see tokens of this process. Others might keep them."""
        found = authority_of(self.endpoint)
        return self.endpoint.startswith("https://") and found is not None and found.host.endswith(_OF_AZURE)


def azure_account(storage: Mapping[str, Any]) -> AzureAccount:
    """Raises ValueError, which names the field and never repeats a key."""
    if connection := storage.get("connection_string"):
        return _of_connection_string(str(connection))
    return _of_url(str(storage.get("account_url") or ""), storage.get("credential"))


def _of_connection_string(text: str) -> AzureAccount:
    pairs = dict(part.strip().split("=", 1) for part in text.split(";") if "=" in part)
    fields = {name.lower(): value for name, value in pairs.items()}
    if fields.get("usedevelopmentstorage", "").lower() == "true":
        endpoint = f"http://127.0.0.1:10000/{_EMULATOR_NAME}"
        return AzureAccount(name=_EMULATOR_NAME, endpoint=endpoint, access_key=_EMULATOR_KEY)
    name, endpoint = fields.get("accountname", ""), fields.get("blobendpoint", "").rstrip("/")
    if not endpoint:
        if not name:
            raise ValueError("connection_string has neither AccountName nor BlobEndpoint")
        protocol, suffix = fields.get("defaultendpointsprotocol", "https"), fields.get("endpointsuffix")
        endpoint = f"{protocol}://{name}.blob.{suffix or 'core.windows.net'}"
    key, signature = fields.get("accountkey") or None, fields.get("sharedaccesssignature") or None
    if key is None and signature is None:
        raise ValueError("connection_string has neither AccountKey nor SharedAccessSignature")
    return AzureAccount(
        name=name or _name_in(endpoint), endpoint=endpoint, access_key=key, sas_token=None if key else signature
    )


def _of_url(url: str, credential: Any) -> AzureAccount:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("account_url is not the URL of an account, such as https://NAME.blob.core.windows.net")
    endpoint = f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")
    given = str(credential).lstrip("?") if credential else parts.query
    is_signature = "sig" in parse_qs(given)
    return AzureAccount(
        name=_name_in(endpoint),
        endpoint=endpoint,
        access_key=given if given and not is_signature else None,
        sas_token=given if is_signature else None,
    )


def _name_in(endpoint: str) -> str:
    """Emulators have the name in the path; in the cloud it begins the name of the host."""
    parts = urlsplit(endpoint)
    return parts.path.strip("/") or (parts.hostname or "").partition(".")[0]
