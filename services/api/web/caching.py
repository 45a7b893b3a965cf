"""How long browsers may keep a file of a built page. Pure.

Builds name what they refer to after its content, so that such a file never changes; the page that refers to it does.
Source: docs/reference/platform.md 15.
"""

from __future__ import annotations

import re
from typing import Final

FOREVER: Final = "public, max-age=31536000, immutable"
FOR_A_WHILE: Final = "public, max-age=600"
ASK_FIRST: Final = "no-cache"

_HASHED: Final = re.compile(r"[-.]([A-Za-z0-9_-]{8}|[A-Za-z0-9_]{8,64})(?:\.chunk)?(?:\.[a-z0-9]{1,6}){1,2}\Z")
"""A hash before the extension, as of Vite (eight characters of base64url) or webpack (hexadecimal digits)."""


def cache_control(name: str) -> str:
    """For a file of this name."""
    if name.endswith(".html"):
        return ASK_FIRST
    found = _HASHED.search(name)
    return FOREVER if found is not None and _is_hash(found[1]) else FOR_A_WHILE


def _is_hash(text: str) -> bool:
    """Words have no digits, and dates no letters. A hash without either is kept for a while only."""
    return any(each.isdigit() for each in text) and any(each.isalpha() for each in text)
