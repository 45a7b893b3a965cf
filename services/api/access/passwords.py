"""Passwords: what the client sends, and what is kept of it (docs/reference/platform.md 2.1)."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Final

import bcrypt

CLIENT_SALT: Final = "GubPEmmotfiK9TMD6Zdw"
"""Clients send the SHA-512 of this and the password instead of the password; every one of them uses the same."""
COST: Final = 10
_BCRYPT_LIMIT: Final = 72  # bcrypt looks at no more, and newer versions of the library refuse more

NO_PASSWORD: Final = ""
"""Kept instead of a hash for accounts that no password opens."""
_NOBODYS: Final = b"$2b$10$MZiANUsspkUpL4CCJZ5onORGgfj8QuDnLOjJ3TUGLuO33OL1cLor."
"""Compared with where there is nothing to compare with: who is refused faster would know that."""


def salted(plain: str) -> str:
    """The form in which clients send ``plain``: 128 hexadecimal digits, and nothing for a blank password."""
    return hashlib.sha512((CLIENT_SALT + plain).encode()).hexdigest() if plain else ""


async def hashed(salted_password: str) -> str | None:
    """What to keep of a password that came salted; None for a blank one."""
    if not salted_password:
        return None
    secret = salted_password.encode()[:_BCRYPT_LIMIT]
    # bcrypt is slow on purpose: everybody else's requests must not wait for it.
    return (await asyncio.to_thread(bcrypt.hashpw, secret, bcrypt.gensalt(COST))).decode()


async def matches(salted_password: str, kept: str | None) -> bool:
    """Does a password that came salted open an account whose kept hash is ``kept``? A no takes always as long."""
    if kept is None and not salted_password:
        return True
    opens = bool(kept and salted_password)
    against = kept.encode() if kept else _NOBODYS
    return await asyncio.to_thread(bcrypt.checkpw, salted_password.encode()[:_BCRYPT_LIMIT], against) and opens
