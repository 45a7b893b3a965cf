"""Logins: wrong passwords are logged, and make the next attempts at the name from the same address wait.

Attempts whose time has come are checked in turn by address, and within an address by name: many of one client delay
nobody's by more than one check for each name and address that are tried.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

from libs.errors import ResourceExhausted, Unauthenticated
from services.api.access.fair_turns import FairTurns
from services.api.access.login_throttle import LoginThrottle, site_of

LONGEST_QUEUE_S: Final = 30.0
"""How long an attempt may wait for its turn before it is refused unseen."""
MOST_AT_ONCE: Final = 4
"""Passwords that are checked at the same time: it is slow on purpose, and all other work needs the processor too."""

log = structlog.get_logger()
Result = TypeVar("Result")


class Logins:
    """The attempts to log in at this process."""

    def __init__(self) -> None:
        self._throttle = LoginThrottle()
        self._at_once = FairTurns(MOST_AT_ONCE)

    async def attempt(self, name: str, address: str, check: Callable[[], Awaitable[Result]]) -> Result:
        """The result of ``check``, once it is this attempt's turn.

        Raises ResourceExhausted when too many wrong ones came before it, and whatever ``check`` raises.
        """
        try:
            async with asyncio.timeout(LONGEST_QUEUE_S):
                await self._turn(name, address)
        except TimeoutError as error:
            log.warning("login.refused", user=name[:100], address=address, reason="too many failed logins")
            raise ResourceExhausted("too many failed logins, try again later") from error
        try:
            result = await check()
        except Unauthenticated as error:
            refusal = error
        else:
            self._throttle.succeed(name, address)
            return result
        finally:
            self._at_once.release()
        log.warning("login.failed", user=name[:100], address=address, reason=str(refusal))
        await asyncio.sleep(self._throttle.fail(name, address, time.monotonic()))
        raise refusal

    async def _turn(self, name: str, address: str) -> None:
        while True:
            await self._at_once.acquire(site_of(address), name)
            wait_s = self._throttle.wait_s(name, address, time.monotonic())
            if wait_s == 0:
                return
            self._at_once.release()
            await asyncio.sleep(wait_s)
