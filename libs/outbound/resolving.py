"""Addresses of a host, as this process resolves its name."""

from __future__ import annotations

import asyncio
from socket import IPPROTO_TCP, SOCK_STREAM

from libs.outbound.destinations import Authority


async def resolve(to: Authority) -> list[str]:
    """In the order of the resolver. Raises OSError."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(to.host, to.port, type=SOCK_STREAM, proto=IPPROTO_TCP)
    except UnicodeError as error:  # a label of the name is empty or too long
        raise OSError(f"no name of a host: {error}") from error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
