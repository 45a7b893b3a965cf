"""The socket of a service that outlives its process, so that nobody is refused while it is started anew."""

from __future__ import annotations

import socket
from typing import Any, Final

BACKLOG: Final = 1024
"""Connections that wait while nobody accepts them."""


class KeptListener:
    """A listening socket, opened when it is first needed.

    address   ``{"host", "port", "variable"}``: where to listen, and the environment variable that tells the service the
              descriptor; None: the service opens its own
    """

    def __init__(self, address: dict[str, Any] | None) -> None:
        self._address = address
        self._socket: socket.socket | None = None

    def handed_over(self) -> tuple[tuple[int, ...], dict[str, str]]:
        """The descriptors that a process gets, and the variables that name them.

        Both are empty when the address is taken: the service then says so itself, where its other troubles are said.
        """
        if self._address is None:
            return (), {}
        if self._socket is None:
            host, port = self._address["host"], self._address["port"]
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            try:
                self._socket = socket.create_server((host, port), family=family, backlog=BACKLOG)
            except OSError:
                return (), {}
        descriptor = self._socket.fileno()
        return (descriptor,), {self._address["variable"]: str(descriptor)}

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
