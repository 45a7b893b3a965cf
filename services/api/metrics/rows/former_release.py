"""Whether services of a release are connected that know summaries in columns only."""

from __future__ import annotations

import asyncio
import math
from typing import Any, Final

import structlog

from libs.db.connecting.settings import FORMER_APPLICATION
from libs.db.engine import Database, driver_connection
from libs.db.failures import is_of_database
from libs.errors import Unavailable

log = structlog.get_logger()

_CONNECTED: Final = """
SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1)
"""
_LOOK_EVERY_S: Final = 2.0
_NEWS_S: Final = 1.8
"""``follow`` leaves it at what was seen less than so long ago: the owner of the summaries looks more often."""


class FormerRelease:
    """What is known of it. Until somebody has looked it counts as connected, and so does a database that is away."""

    def __init__(self) -> None:
        self.is_connected = True
        self._looked_at_s = -math.inf

    def is_gone(self) -> bool:
        return not self.is_connected

    async def look(self, driver: Any) -> None:
        """Find out with an asyncpg connection. Raises what the database raises."""
        connected = await driver.fetchval(_CONNECTED, FORMER_APPLICATION)
        if connected != self.is_connected:
            log.info("metrics.former_release", is_connected=connected)
        self.is_connected = connected

    async def look_again(self, driver: Any, *, after_s: float) -> None:
        """Look if the last time was so many seconds ago, or never. Raises what the database raises."""
        if self._is_older_than(after_s):
            await self.look(driver)
            self._looked_at_s = _now_s()

    def _is_older_than(self, seconds: float) -> bool:
        return _now_s() - self._looked_at_s >= seconds

    async def follow(self, db: Database) -> None:
        """Look every now and then until cancelled."""
        while True:
            try:
                if self._is_older_than(_NEWS_S):
                    async with db.read() as connection:
                        await self.look_again(await driver_connection(connection), after_s=_NEWS_S)
            except Exception as error:
                if not (isinstance(error, Unavailable) or is_of_database(error)):
                    raise
                self.is_connected = True
                log.info("metrics.former_release_unknown", error=str(error))
            await asyncio.sleep(_LOOK_EVERY_S)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
