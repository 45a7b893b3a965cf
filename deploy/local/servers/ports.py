"""Ports for servers that are told where to listen before they start."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection
from typing import Final

LISTENING: Final = range(20000, 32768)
"""Where we listen: below the ports that the system gives to outgoing connections, any of which could take one of ours
before we do, or while we are down."""


def free_port(host: str = "127.0.0.1", preferred: int | None = None, *, avoid: Collection[int] = ()) -> int:
    """``preferred`` when nobody listens there, else one of LISTENING that nobody uses and that is not in ``avoid``.

    Whoever else asks gets another, for the minute in which a server is to take it. Raises OSError when there is none.
    """
    if preferred is not None and cannot_listen(host, preferred) is None:
        return preferred
    # Nobody else's seed: tests that run side by side would all begin with the same port.
    for port in random.SystemRandom().sample([port for port in LISTENING if port not in avoid], 100):
        if _claim(host, port):
            return port
    raise OSError(f"no free port on {host}")


def accepts_connections(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def cannot_listen(host: str, port: int) -> OSError | None:
    """Why a server could not listen there; None when it could."""
    with socket.socket(_family(host)) as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind((host, port))
        except OSError as error:
            return error
    return None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _claim(host: str, port: int) -> bool:
    """Leave a connection of the port behind that lingers in TIME_WAIT: servers, which set SO_REUSEADDR, may listen
    beside it, and who comes here without gets another port."""
    with socket.socket(_family(host)) as listener:
        try:
            listener.bind((host, port))
        except OSError:
            return False
        # Only now, for the connection that has it from here, so that a server may take the port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.listen(1)
        with socket.create_connection(listener.getsockname(), timeout=5):
            accepted, _ = listener.accept()
            accepted.close()  # who closes first lingers
    return True
