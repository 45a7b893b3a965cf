"""Connections to the log intake, for the scripts that run beside a task and talk to it.

Those load it by its name from their own folder, for they run without the rest of this project. Standard library of
Python 3.8 only.
"""

from __future__ import annotations

import socket


def connect(host: str, port: int, timeout_s: float, *, tls: bool, ca_file: str, server_name: str) -> socket.socket:
    """``ca_file`` is empty for the authorities that the system trusts, or ``noverify``; the certificate has to name
    ``server_name``."""
    connection = socket.create_connection((host, port), timeout_s)
    if not tls:
        return connection
    import ssl  # noqa: PLC0415  several megabytes that plain HTTP does not need; not every Python of an image has it

    context = ssl.create_default_context()
    if ca_file == "noverify":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca_file:
        context.load_verify_locations(ca_file)
    return context.wrap_socket(connection, server_hostname=server_name)
