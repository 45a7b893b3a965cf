"""Bearer tokens: 256 random bits for the holder, a digest for us. Pure but for the randomness of the system."""

from __future__ import annotations

import hashlib
import secrets


def new_token() -> str:
    """A token nobody can guess. It is shown once, and kept nowhere."""
    while (token := secrets.token_urlsafe(32)).startswith("-"):
        pass  # `det token login` would take it for an option
    return token


def digest(token: str) -> bytes:
    """What is kept of a token. No salt is needed: there is nothing to guess."""
    return hashlib.sha256(token.encode()).digest()
