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

_SIZE: Final = re.compile(r"\d+x\d+")
_MADE: Final = ("assets", "static")
"""Where Vite and webpack put what they have named. Files beside them keep the names that people gave them, such as
``icon-1024x1024.png``."""


def cache_control(path: str) -> str:
    """For a file of this path in the folder of the page."""
    if path.endswith(".html"):
        return ASK_FIRST
    found = _HASHED.search(path)
    of_builds = path.partition("/")[0] in _MADE
    return FOREVER if of_builds and found is not None and _is_hash(found[1]) else FOR_A_WHILE


def _is_hash(text: str) -> bool:
    """Words have no digits, dates no letters, and sizes nothing else. A hash like these is kept for a while only."""
    if _SIZE.fullmatch(text):
        return False
    return any(each.isdigit() for each in text) and any(each.isalpha() for each in text)
