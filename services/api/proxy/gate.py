"""The gate before every service: who asks, and whether they may (docs/reference/tasks-and-cli.md 4.3)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import select

from libs.cluster.config import BASIC, AuthzConfig
from libs.db.engine import Database
from libs.db.tables.users import users
from libs.errors import PermissionDenied, Unauthenticated
from libs.ids import UserId
from libs.tasks.proxy_tokens import PageHolder, ProxyTokens
from services.api.access.credentials import Credentials, TokenKind
from services.api.access.principal import Principal
from services.api.access.sessions import Sessions
from services.api.proxy.credentials import Offer, OfferedIn
from services.api.proxy.permission import check_use
from services.api.proxy.services import ProxiedService

REMEMBER_USER_S: Final = 10.0
MOST_REMEMBERED: Final = 10_000


class LoginNeeded(Unauthenticated):
    """There are credentials, and none of them is worth anything any more: whoever sent them should log in again."""


class LetThrough(NamedTuple):
    """Why a request was let through.

    offer  the token that was good; None for a stranger, where the service asks nobody
    """

    offer: Offer | None

    @property
    def is_stranger(self) -> bool:
        return self.offer is None


class Gate:
    """Lets requests through, and says later whether they would be let through again."""

    def __init__(
        self,
        *,
        db: Database,
        sessions: Sessions,
        tokens: ProxyTokens,
        authz: AuthzConfig = BASIC,
        demands_token: bool = False,
    ) -> None:
        """``demands_token`` also of those who come to a service that asks nobody, as shells do."""
        self._db = db
        self._demands_token = demands_token
        self._authz = authz
        self._sessions = sessions
        self._tokens = tokens
        self._users: dict[UserId, tuple[float, Principal]] = {}

    async def admit(self, service: ProxiedService, offers: Sequence[Offer]) -> LetThrough:
        """The first offer that is good counts.

        Raises Unauthenticated when there is none, LoginNeeded when none is good, PermissionDenied for a proxy token of
        another task and for who may look at a notebook and no more, and NotFound when the user may not know of the
        task. A service that asks nobody lets strangers through, and refuses users that it knows as others do.
        """
        if service.port.unauthenticated and not self._demands_token:
            return await self._admit_known(service, offers)
        if not offers:
            raise Unauthenticated("Unauthorized")
        for offer in offers:
            try:
                principal = await self._principal(service, offer)
            except LoginNeeded:
                continue
            await check_use(self._db, self._authz, principal, service)
            return LetThrough(offer)
        raise LoginNeeded("invalid credentials")

    async def _admit_known(self, service: ProxiedService, offers: Sequence[Offer]) -> LetThrough:
        for offer in offers:
            try:
                principal = await self._principal(service, offer)
            except (LoginNeeded, PermissionDenied):
                continue  # whoever brings nothing that is good is a stranger
            await check_use(self._db, self._authz, principal, service)
            return LetThrough(offer)
        return LetThrough(None)

    async def session_of(self, admission: LetThrough) -> int | None:
        """The login that somebody was let through by; None where it was something else."""
        offer = admission.offer
        if offer is None or offer.is_proxy_token:
            return None
        return (await self._sessions.authenticate(Credentials(offer.token, TokenKind.USER))).session_id

    async def check_again(self, service: ProxiedService, admission: LetThrough) -> None:
        """Raises as ``admit`` does when what was good is not any more."""
        if admission.offer is not None:
            await self.admit(service, (admission.offer,))

    async def _principal(self, service: ProxiedService, offer: Offer) -> Principal:
        if not offer.is_proxy_token:
            try:
                return await self._sessions.authenticate(Credentials(offer.token, TokenKind.USER))
            except (Unauthenticated, PermissionDenied) as error:
                raise LoginNeeded(str(error)) from error
        page = self._tokens.page_holder(offer.token)
        if page is not None:
            return await self._principal_of_page(service, page)
        holder = self._tokens.holder(offer.token)
        if holder is None:
            raise LoginNeeded("invalid credentials")
        if holder.task_id != service.task_id:
            if offer.source is OfferedIn.COOKIE:
                raise LoginNeeded("invalid credentials")  # a page of that task may have set it
            raise PermissionDenied("the token is for another task")
        return await self._active_user(holder.user_id)

    async def _principal_of_page(self, service: ProxiedService, page: PageHolder) -> Principal:
        if page.task_id != service.task_id or page.until:
            raise LoginNeeded("invalid credentials")
        try:
            return await self._sessions.of_session(page.session_id)
        except (Unauthenticated, PermissionDenied) as error:
            raise LoginNeeded(str(error)) from error

    async def _active_user(self, user_id: UserId) -> Principal:
        known = self._users.get(user_id)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        query = select(users.c.username, users.c.admin).where(users.c.id == user_id, users.c.active)
        async with self._db.read() as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            raise LoginNeeded("user does not have permission")
        principal = Principal(user_id=user_id, username=row.username, admin=row.admin)
        if len(self._users) >= MOST_REMEMBERED:
            self._users.clear()
        self._users[user_id] = (time.monotonic() + REMEMBER_USER_S, principal)
        return principal
