"""What a starting service needs of the database, asked for until it is there.

A database that has answered once may be restarted a moment later, and refuses connections until it has recovered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

from libs.db.engine import DatabaseSettings, is_connection_failure
from libs.errors import Unavailable

Result = TypeVar("Result")
log = structlog.get_logger()

_PAUSE_S: Final = 0.5


async def patiently(settings: DatabaseSettings, work: Callable[[], Awaitable[Result]]) -> Result:
    """The result of ``work``, begun again whenever the database is lost.

    work  may be begun and cut off any number of times
    Raises Unavailable when it does not get through within ``connect_timeout_s``, and at once what is no lost database.
    """
    give_up_at = asyncio.get_running_loop().time() + settings.connect_timeout_s
    while True:
        try:
            return await work()
        except Exception as error:
            if not is_connection_failure(error):
                raise
            if asyncio.get_running_loop().time() > give_up_at:
                raise Unavailable(f"the database does not answer: {error}") from error
            log.info("database.waiting", error=str(error))
        await asyncio.sleep(_PAUSE_S)
