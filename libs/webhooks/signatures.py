"""Signatures of webhook requests, in the way that receivers check them. Pure.
Source: docs/reference/platform.md 11."""

from __future__ import annotations

import hmac
from typing import Final

TIMESTAMP: Final = "X-Determined-AI-Signature-Timestamp"
SIGNATURE: Final = "X-Determined-AI-Signature"


def signature_headers(body: bytes, *, key: str, now_s: int) -> dict[str, str]:
    """The headers that say when ``body`` was signed, in Unix seconds, and prove that the holder of ``key`` did."""
    return {TIMESTAMP: str(now_s), SIGNATURE: signature(body, key=key, timestamp=str(now_s))}


def signature(body: bytes, *, key: str, timestamp: str) -> str:
    """HMAC-SHA256 over the timestamp, a comma and the body as it is sent; hexadecimal."""
    return hmac.digest(key.encode(), timestamp.encode() + b"," + body, "sha256").hex()
