"""What PostgreSQL stores of a password, so that the password itself is in no statement and in no log of the server.

Source: https://www.postgresql.org/docs/current/catalog-pg-authid.html, RFC 5803
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

SALT_BYTES: Final = 16
_ITERATIONS: Final = 4096


def scram_verifier(password: str, salt: bytes) -> str:
    """The verifier of SCRAM-SHA-256 for a password of ASCII characters, which SASLprep leaves as they are."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ITERATIONS)
    stored_key = hashlib.sha256(_hmac(salted, b"Client Key")).digest()
    server_key = _hmac(salted, b"Server Key")
    return f"SCRAM-SHA-256${_ITERATIONS}:{_base64(salt)}${_base64(stored_key)}:{_base64(server_key)}"


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, hashlib.sha256).digest()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
