"""Retry what a starting service asks of the database, until the database is available.

A database that has answered once may be restarted a moment later, and refuses connections until it has recovered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

from libs.db.failures import is_connection_failure
from libs.errors import Unavailable
from libs.retry import soon_then_every, with_retry

Result = TypeVar("Result")
log = structlog.get_logger()

_PAUSE_S: Final = 0.5


async def retry_until_available(
    work: Callable[[], Awaitable[Result]],
    *,
    timeout_s: float,
    is_transient: Callable[[Exception], bool] = is_connection_failure,
) -> Result:
    """The result of ``work``, which may be begun and cut off any number of times.

    Raises Unavailable when it does not get through within ``timeout_s``, and at once what is not ``is_transient``.
    """
    try:
        return await with_retry(
            work, is_transient=is_transient, on_retry=_say, pause_s=soon_then_every(_PAUSE_S), timeout_s=timeout_s
        )
    except Exception as error:
        if not is_transient(error):
            raise
        raise Unavailable(f"the database does not answer: {error}") from error


def _say(error: Exception, attempt: int) -> None:
    log.info("database.waiting", error=str(error))
