"""Ports for programs that cannot choose one themselves and say which."""

from __future__ import annotations

import socket


def free_port() -> int:
    """One that was free just now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
