"""Looks up the principal of a token (docs/reference/platform.md 2.2).

Verified tokens are remembered for a few seconds, because training code asks many times a second. Whatever ends a
session publishes a ``UserChanged`` or ``AllocationChanged`` event, on which every api forgets what it remembered.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import Any, Final

from libs.bus import Bus, CoreMessage
from libs.clock import Clock
from libs.db.engine import Database
from libs.errors import PermissionDenied, Unauthenticated
from libs.events import subjects
from libs.ids import AllocationId, UserId
from libs.tokens import digest
from services.api.access.calling_tasks import calling_task
from services.api.access.credentials import Credentials, TokenKind
from services.api.access.principal import Principal

REMEMBER_S: Final = 10.0
MOST_REMEMBERED: Final = 10_000

_USER_SESSION: Final = """
SELECT s.id, s.user_id, s.token_type, s.expires_at, s.revoked_at, s.allocation_id, u.username, u.admin, u.active,
       u.remote
  FROM user_sessions s JOIN users u ON u.id = s.user_id
 WHERE """
_BY_ID: Final = _USER_SESSION + "s.id = $1"
_BY_TOKEN: Final = _USER_SESSION + "s.token_hash = $1"
_OF_ALLOCATION: Final = """
SELECT s.owner_id, s.allocation_id, s.revoked_at, u.username, u.admin
  FROM allocation_sessions s JOIN users u ON u.id = s.owner_id
 WHERE s.token_hash = $1
"""


class Sessions:
    """Looks tokens up, and remembers what it found for a moment."""

    def __init__(self, *, db: Database, clock: Clock, narrow_user_tokens: bool = False) -> None:
        """``narrow_user_tokens`` whether tasks reach no more by DET_USER_TOKEN than by their own token."""
        self._db = db
        self._clock = clock
        self._narrow_user_tokens = narrow_user_tokens
        self._known: dict[bytes, tuple[float, Principal]] = {}
        self._forgotten = 0

    async def authenticate(self, credentials: Credentials) -> Principal:
        """Who holds the token. Raises Unauthenticated, or PermissionDenied for a deactivated user."""
        # A token of one kind is worth nothing as the other, so the kind is part of the key.
        kind = b"allocation" if credentials.kind is TokenKind.ALLOCATION else b"user"
        key = kind + digest(credentials.token)
        known = self._known_by(key)
        return await self._remembered(key, lambda: self._look_up(credentials)) if known is None else known

    async def of_session(self, session_id: int) -> Principal:
        """Whose session of a user it is, for what was issued for it. Raises as ``authenticate`` does."""
        return await self._remembered(b"session %d" % session_id, lambda: self._user(_BY_ID, session_id))

    def _known_by(self, key: bytes) -> Principal | None:
        """Who was found for it a moment ago."""
        known = self._known.get(key)
        if known is not None and known[0] > time.monotonic() and not self._has_expired(known[1].expires_at):
            return known[1]
        return None

    async def _remembered(self, key: bytes, look_up: Callable[[], Awaitable[Principal]]) -> Principal:
        if (known := self._known_by(key)) is not None:
            return known
        forgotten = self._forgotten
        principal = await look_up()
        if forgotten != self._forgotten:
            return principal  # something ended while we looked; what we saw may be from before
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        self._known[key] = (time.monotonic() + REMEMBER_S, principal)
        return principal

    def forget(self) -> None:
        """Forget everything: some session ended, or some user changed."""
        self._known.clear()
        self._forgotten += 1

    def forget_allocation(self, token: str) -> None:
        """Forget the sessions of one allocation; ``token`` is its id as subjects spell it."""
        ended = [
            key
            for key, (_, principal) in self._known.items()
            if principal.task is not None and subjects.token(principal.task.allocation_id) == token
        ]
        for key in ended:
            del self._known[key]
        self._forgotten += 1

    @asynccontextmanager
    async def listening(self, bus: Bus) -> AsyncIterator[None]:
        """Forget what the bus says has ended, while the block runs. Raises Unavailable when it is away."""

        async def user_changed(_: CoreMessage) -> None:
            self.forget()

        async def allocation_ended(message: CoreMessage) -> None:
            self.forget_allocation(message.subject.split(".")[-2])

        async with AsyncExitStack() as stack:
            for subject, callback in (
                (subjects.events_of("user"), user_changed),
                (subjects.events_of("allocation", what="ended"), allocation_ended),
            ):
                await stack.enter_async_context(bus.subscribe(subject, callback, on_gap=self.forget))
            yield

    async def _look_up(self, credentials: Credentials) -> Principal:
        if credentials.kind is TokenKind.ALLOCATION:
            return await self._allocation(credentials.token)
        return await self._user(_BY_TOKEN, digest(credentials.token))

    async def _user(self, query: str, which: int | bytes) -> Principal:
        async with self._db.read_prepared() as connection:
            found = await connection.fetch(query, which)
            if not found:
                raise Unauthenticated("invalid credentials")
            (row,) = found
            self._check(row)
            allocation_id = row["allocation_id"]
            task = None if allocation_id is None else await calling_task(connection, AllocationId(allocation_id))
        return Principal(
            user_id=UserId(row["user_id"]),
            username=row["username"],
            admin=row["admin"],
            task=task,
            is_narrow=task is not None and self._narrow_user_tokens,
            session_id=row["id"],
            expires_at=row["expires_at"],
        )

    def _check(self, session: Mapping[Any, Any]) -> None:
        if session["revoked_at"] is not None:
            access = session["token_type"] == "ACCESS"  # noqa: S105
            raise Unauthenticated("user access token revoked" if access else "invalid credentials")
        if self._has_expired(session["expires_at"]):
            raise Unauthenticated("remote user token expired" if session["remote"] else "invalid credentials")
        if not session["active"]:
            raise PermissionDenied("user does not have permission")

    def _has_expired(self, expires_at: datetime | None) -> bool:
        return expires_at is not None and expires_at <= self._clock.now()

    async def _allocation(self, token: str) -> Principal:
        async with self._db.read_prepared() as connection:
            found = await connection.fetch(_OF_ALLOCATION, digest(token))
            if not found or found[0]["revoked_at"] is not None:
                raise Unauthenticated("invalid credentials")
            (row,) = found
            task = await calling_task(connection, AllocationId(row["allocation_id"]))
        return Principal(
            user_id=UserId(row["owner_id"]), username=row["username"], admin=row["admin"], task=task, is_narrow=True
        )
