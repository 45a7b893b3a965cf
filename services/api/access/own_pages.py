"""Requests from pages of our own: browsers add the cookie of a login to what any page makes them send. Pure.

Pages of tasks are of the same site as ours, so ``SameSite`` does not keep the cookie from them. A request that changes
something and is authorised by the cookie therefore has to say that it comes from a page of this very address: by
``Origin`` (RFC 6454) or ``Sec-Fetch-Site`` (W3C Fetch Metadata), neither of which a page can choose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from libs.errors import PermissionDenied

_CHANGE_NOTHING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_REFUSAL: Final = (
    "a request that changes something with the cookie of a login has to come from a page of this address (Origin or "
    "Sec-Fetch-Site); send the token in an Authorization header instead"
)


def require_own_page(method: str, headers: Mapping[str, str]) -> None:
    """For requests that are authorised by the cookie. Raises PermissionDenied.

    headers  lower-case name -> value
    """
    if method in _CHANGE_NOTHING or headers.get("sec-fetch-site") == "same-origin" or _is_origin_ours(headers):
        return
    raise PermissionDenied(_REFUSAL)


def _is_origin_ours(headers: Mapping[str, str]) -> bool:
    hosts = {headers[name].lower() for name in ("host", "x-forwarded-host") if name in headers}
    try:
        return urlsplit(headers.get("origin", "")).netloc.lower() in hosts
    except ValueError:
        return False
