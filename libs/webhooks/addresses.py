"""URLs of webhooks, and the addresses that stand in them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from libs.outbound.addresses import Network, is_allowed


def problem_of_url(url: str) -> str | None:
    """What is wrong with the URL of a webhook; None when nothing is."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "valid url required"
    if parts.scheme not in ("http", "https") or not parts.hostname or any(char.isspace() for char in url):
        return "valid url required"
    return None


def refused_literal(url: str, allowed: Sequence[Network]) -> str | None:
    """The address that stands in the URL itself, if no request may go there."""
    host = urlsplit(url).hostname or ""
    try:
        return None if is_allowed(host, allowed) else host
    except ValueError:
        return None
