"""An attempt to log in: what a browser keeps of it, and what is told the provider. Pure.

The browser keeps a secret in a cookie, and the provider sees digests of it only. Nothing is kept here, so that any
replica can finish what another one has begun; and whoever comes back with the code of somebody else has not the cookie
that goes with it (RFC 6749 10.12, OpenID Connect Core 3.1.2.1, RFC 7636).
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final

from libs.errors import FailedPrecondition, InvalidRequest

STATE_COOKIE: Final = "oauth2_state"
LIFETIME: Final = timedelta(minutes=5)
LONGEST_RELAY_STATE: Final = 1024
_BEGIN_AGAIN: Final = "the login has expired, or was begun in another window; begin again"


@dataclass(frozen=True, slots=True)
class Attempt:
    """``relay_state`` is what the login was begun with: ``cli``, or something for whoever comes after it."""

    secret: str
    begun_at: datetime
    relay_state: str

    @property
    def cookie(self) -> str:
        """All of it, in characters that a cookie may have."""
        return f"{self.secret}.{int(self.begun_at.timestamp())}.{_coded(self.relay_state.encode())}"

    @property
    def state(self) -> str:
        return self._derived("state")

    @property
    def nonce(self) -> str:
        return self._derived("nonce")

    @property
    def verifier(self) -> str:
        """Of the code, for PKCE."""
        return self._derived("verifier")

    @property
    def challenge(self) -> str:
        """What the provider is shown of the verifier, by the method S256."""
        return _coded(sha256(self.verifier.encode()).digest())

    def _derived(self, purpose: str) -> str:
        return _coded(sha256(f"{purpose}:{self.cookie}".encode()).digest())


def begin_attempt(*, secret: str, relay_state: str, now: datetime) -> Attempt:
    """``secret``: of characters that a cookie may have, without a dot. Raises InvalidRequest."""
    if len(relay_state.encode("utf-8", "replace")) > LONGEST_RELAY_STATE:
        raise InvalidRequest(f"relayState: must not be longer than {LONGEST_RELAY_STATE} bytes")
    return Attempt(secret, now, relay_state)


def resume_attempt(cookie: str, *, state: str, now: datetime) -> Attempt:
    """The attempt that a browser with this cookie has begun, when the provider sends it back with this state.

    Raises FailedPrecondition when it has begun none, or too long ago.
    """
    try:
        secret, begun_at, relay_state = cookie.split(".")
        moment = datetime.fromtimestamp(int(begun_at), UTC)
        attempt = Attempt(secret, moment, urlsafe_b64decode(relay_state + "=" * (-len(relay_state) % 4)).decode())
    except (ValueError, OverflowError, OSError, binascii.Error) as error:
        raise FailedPrecondition(_BEGIN_AGAIN) from error
    if attempt.cookie != cookie or attempt.state != state or not moment <= now < moment + LIFETIME:
        raise FailedPrecondition(_BEGIN_AGAIN)
    return attempt


def _coded(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()
