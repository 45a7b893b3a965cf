"""Authenticates shippers: a token vouches for the allocation, and headers tell its pods and their containers apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from libs.ids import task_of_allocation
from services.logs.intake.tokens import TokenCache
from services.logs.lines.streams import LineOrigin

_MAX_IDENT: Final = 256


class NoTokenError(Exception):
    """A request that does not say whose it is."""


class UnknownTokenError(Exception):
    """A token behind which there is no allocation; there may be one later."""


async def origin_of(headers: Mapping[str, str], tokens: TokenCache) -> LineOrigin:
    """The origin of the lines that a request is about; ``headers`` by lower-case name.

    Raises NoTokenError and UnknownTokenError.
    """
    scheme, _, token = headers.get("authorization", "").partition(" ")
    token = token.strip() if scheme.lower() == "bearer" else ""
    if not token:
        raise NoTokenError
    allocation = await tokens.allocation_of(token)
    task = task_of_allocation(allocation) if allocation else None
    if allocation is None or task is None:
        raise UnknownTokenError
    restart = headers.get("x-det-restart", "")
    return LineOrigin(
        task=task,
        allocation=allocation,
        pod=_ident(headers.get("x-det-pod", "")) or allocation,
        node=_ident(headers.get("x-det-node", "")) or None,
        restart=int(restart) if restart.isascii() and restart.isdigit() and len(restart) < 10 else 0,
    )


def _ident(value: str) -> str:
    """A header that becomes part of a stream's key: printable ASCII without separators, not endless."""
    return "".join(char for char in value if char.isascii() and char.isprintable() and char not in " /")[:_MAX_IDENT]
