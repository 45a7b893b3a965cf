"""Requests to addresses that are not encrypted, which most of ours are."""

from __future__ import annotations

import ssl
from typing import Final

NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""``verify`` for such a client, which trusts nobody. Without it httpx loads the certificates of all authorities for
each client, and for each request outside of one: 25 ms of processor time, more than most of what is asked."""
