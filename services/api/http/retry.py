"""Retries calls of tasks while the database is away, because their clients do not.

While a task is being prepared, its client repeats no POST, neither after a broken connection nor after a 503
(docs/reference/harness-protocol.md 2): refused for the seconds that a database needs to come back, the task would fail.
So what a task reports about itself is repeated here. A connection may break after its transaction has been committed,
so only idempotent routes are repeated (``Route.idempotent``): there twice is as good as once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

from libs.errors import Unavailable
from libs.retry import every, with_retry
from services.api.http.database_errors import as_known_error

GIVE_UP_AFTER_S: Final = 20.0
"""Longer than PostgreSQL takes to recover from a crash, or a standby to take over."""
_PAUSE_S: Final = every(0.25)

Result = TypeVar("Result")
log = structlog.get_logger(__name__)


def retry_while_away(
    work: Callable[[], Awaitable[Result]], *, give_up_after_s: float = GIVE_UP_AFTER_S
) -> Awaitable[Result]:
    """The result of ``work``, repeated while the database or bus it needs is away; raises its error when time is up."""
    return with_retry(work, is_transient=_is_away, on_retry=_log_retry, pause_s=_PAUSE_S, timeout_s=give_up_after_s)


def _is_away(error: Exception) -> bool:
    """Only what a database or bus that is away looks like: an Unavailable of our own is a decision."""
    return isinstance(as_known_error(error), Unavailable)


def _log_retry(error: Exception, attempt: int) -> None:
    log.info("http.retried", error=str(error).partition("\n")[0], attempt=attempt)
