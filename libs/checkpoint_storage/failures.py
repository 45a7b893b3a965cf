"""Failures of storage, in words for the person who waits, and whether waiting can help.

The library tells most of them by text alone. Whole texts go to the log: addresses in them may not concern everybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

import structlog
from obstore.exceptions import BaseError

from libs.errors import FailedPrecondition, ResoluteError, Unavailable

_STATUS: Final = re.compile(r"status code: (\d{3})")
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_QUERY: Final = re.compile(r"\?\S+")
_OWN_KEYS: Final = re.compile(r"169\.254\.|metadata\.google|token request|no credential", re.IGNORECASE)
_PANIC: Final = "PanicException"
"""What the library raises for an address that it cannot make a request of; it is no Exception and has no module."""
_LOGGED: Final = 500
_REFUSALS: Final[Mapping[int, tuple[type[ResoluteError], str]]] = {
    401: (FailedPrecondition, "refuses its keys"),
    403: (FailedPrecondition, "refuses its keys"),
    404: (FailedPrecondition, "does not exist"),
    # Of our own proxy: the library takes the token along to no other host.
    407: (FailedPrecondition, "redirects to another host, which is followed over HTTPS only"),
    412: (Unavailable, "has another version of a file than a moment ago"),
}

log = structlog.get_logger(__name__)


@contextmanager
def told_plainly(place: str) -> Iterator[None]:
    """Turns what the library raises into errors for users, and writes to the log which storage failed and why.

    place  the storage, in words without secrets
    A missing object stays a FileNotFoundError: only the caller knows what that means.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except (BaseError, OSError, ValueError) as error:
        known = as_known_error(str(error), place)
        log.warning("storage.failed", storage=place, error=type(error).__name__, reason=_brief(str(error)))
        raise known from error
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        log.warning("storage.failed", storage=place, error=_PANIC, reason=_brief(str(error)))
        raise FailedPrecondition(f"checkpoint storage {place} has an address that is no URL") from error


def as_known_error(text: str, place: str) -> ResoluteError:
    """What a text of the library means: something that has to be put right, or something that passes."""
    first = text.partition("Debug source:")[0]
    status = int(found[1]) if (found := _STATUS.search(first)) else None
    code = found[1] if (found := _CODE.search(first)) else ""
    error, words = _meaning(first, status, code)
    answer = " ".join(filter(None, (str(status or ""), code)))
    return error(f"checkpoint storage {place} {words}" + (f": {answer}" if answer else ""))


def _meaning(text: str, status: int | None, code: str) -> tuple[type[ResoluteError], str]:
    if _OWN_KEYS.search(text.partition("<")[0]):  # what follows is the answer of the storage itself
        return FailedPrecondition, "needs keys, and neither it nor this service has any that are taken"
    if status is None or status == HTTPStatus.TOO_MANY_REQUESTS:
        return Unavailable, "does not answer"
    if "full" in code.lower() or status == HTTPStatus.INSUFFICIENT_STORAGE:
        return Unavailable, "is full"
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Unavailable, "does not answer"
    return _REFUSALS.get(status, (FailedPrecondition, "refuses the request"))


def _brief(text: str) -> str:
    """Without what follows addresses, where signatures are."""
    return _QUERY.sub("?...", text.partition("Debug source:")[0].strip())[:_LOGGED]
