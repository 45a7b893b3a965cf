"""One subscriber, from its request to the end of its connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import structlog
from websockets.frames import CloseCode

from libs.errors import InvalidRequest, ResoluteError
from libs.waiting import wait_until_set
from services.api.access.rights.rights import UserRights
from services.api.updates.messages import UpdateKind
from services.api.updates.settings import UpdatesSettings
from services.api.updates.subscription import Subscription
from services.api.updates.websocket import Gone, WebSocket

RETRY_S: Final = 1.0
COMPARE_EVERY: Final = 6
"""One of so many looks without a reason also finds what was deleted while the bus was not heard."""

log = structlog.get_logger()


class Subscriber:
    """Tells one client what it follows.

    admit_again  the rights of the caller as they are by now; raises what refuses it
    subscribe    a subscription from a startup message; raises InvalidRequest
    is_away      whether an error says no more than that the database does not answer now
    """

    def __init__(
        self,
        *,
        socket_head: bytes,
        rights: UserRights,
        admit_again: Callable[[], Awaitable[UserRights]],
        subscribe: Callable[[bytes], Subscription],
        is_away: Callable[[BaseException], bool],
        settings: UpdatesSettings,
    ) -> None:
        self._news = asyncio.Event()
        self.socket = WebSocket(socket_head, on_news=self._news.set)
        self._rights = rights
        self._admit_again = admit_again
        self._subscribe = subscribe
        self._is_away = is_away
        self._settings = settings
        self._subscription: Subscription | None = None
        self._changed: dict[UpdateKind, bool] = {}
        self._clock = asyncio.get_running_loop().time
        self._asked_at = self._clock()
        self._asks_again = False
        self._goes_away = False

    def hear(self, kind: UpdateKind, *, may_be_gone: bool) -> None:
        """Something of this kind has changed."""
        self._changed[kind] = may_be_gone or self._changed.get(kind, False)
        self._news.set()

    def ask_again(self) -> None:
        """Rights of somebody have changed."""
        self._asks_again = True
        self._news.set()

    def go_away(self) -> None:
        """The api ends."""
        self._goes_away = True
        self._news.set()

    async def run(self) -> None:
        """Serve until either side ends it."""
        try:
            await self._serve()
        except Gone as gone:
            log.info("updates.gone", reason=str(gone))
        except InvalidRequest as error:
            self.socket.close(CloseCode.POLICY_VIOLATION, str(error))
        except ResoluteError as error:  # not admitted any more
            log.info("updates.refused", reason=str(error))
            self.socket.close(CloseCode.POLICY_VIOLATION, str(error))
        except Exception:  # the rim: one subscriber fails, and the others are none the worse
            log.exception("updates.failed")
            self.socket.close(CloseCode.INTERNAL_ERROR, "unexpected error: see the log of the api")
        finally:
            await self.socket.ended()

    async def _serve(self) -> None:
        clock = self._clock
        settings = self._settings
        looked_at = pinged_at = clock()
        looks = 0
        while not self.socket.is_gone:
            self._news.clear()
            if self._goes_away:
                self.socket.close(CloseCode.GOING_AWAY, "the api ends: connect again")
                return
            await self._check_again()
            if (message := self.socket.receive()) is not None:
                self._subscription = self._subscribe(message)
                await self._send(self._subscription.synchronize)
                self._news.set()  # there may be more
                continue
            if clock() - looked_at >= settings.look_interval_s:
                looked_at, looks = clock(), looks + 1
                for kind in UpdateKind:
                    self.hear(kind, may_be_gone=looks % COMPARE_EVERY == 0)
            if self._changed:
                await self._look()
                continue
            if clock() - pinged_at >= settings.ping_interval_s:
                if clock() - self.socket.heard_at >= 3 * settings.ping_interval_s:
                    self.socket.cut()
                    raise Gone("silent")
                self.socket.ping()
                pinged_at = clock()
            due_at = min(
                self._asked_at + settings.recheck_interval_s,
                looked_at + settings.look_interval_s,
                pinged_at + settings.ping_interval_s,
            )
            await wait_until_set(self._news, timeout_s=max(due_at - clock(), 0.01))

    async def _look(self) -> None:
        changed, self._changed = self._changed, {}
        subscription = self._subscription
        if subscription is not None:
            await self._send(lambda rights: subscription.look(changed, rights))

    async def _send(self, messages: Callable[[UserRights], AsyncIterator[bytes]]) -> None:
        """Send them all: from the start when the database was away, and when rights have changed meanwhile.

        Raises Gone, and what refuses the caller.
        """
        is_all_said = False
        while not (is_all_said or self.socket.is_gone or self._goes_away):
            rights = self._rights
            try:
                async for message in messages(rights):
                    await self.socket.send(message, timeout_s=self._settings.send_timeout_s)
                    await self._check_again()  # whoever reads slowly may take long
                    if self._rights is not rights:
                        break
                else:
                    is_all_said = True
            except Exception as error:
                if not self._is_away(error):
                    raise
                log.info("updates.interrupted", error=str(error).partition("\n")[0])
                await asyncio.sleep(RETRY_S)

    async def _check_again(self) -> None:
        """Raises what refuses the caller; a database that is away refuses nobody."""
        if not self._asks_again and self._clock() - self._asked_at < self._settings.recheck_interval_s:
            return
        self._asks_again = False
        self._asked_at = self._clock()
        try:
            rights = await self._admit_again()
        except Exception as error:
            if not self._is_away(error):
                raise
            log.info("updates.not_asked_again", error=str(error).partition("\n")[0])
            return
        if rights.grants != self._rights.grants:
            self._rights = rights
            for kind in UpdateKind:
                self.hear(kind, may_be_gone=True)
