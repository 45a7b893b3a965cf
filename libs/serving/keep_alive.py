"""TCP keep-alive: a peer that is gone without a word is noticed, however long nothing is to be said."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

_TIMES: Final = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 8))
"""It is noticed after three minutes."""


def keep_alive(transport: asyncio.BaseTransport) -> None:
    """Have the operating system ask now and then whether the other side is still there."""
    connection = transport.get_extra_info("socket")
    if connection is None:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _TIMES:
        if (option := getattr(socket, name, None)) is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
