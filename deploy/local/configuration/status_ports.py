"""Ports where the services of this machine tell how they are, chosen once per service and kept in the state folder."""

from __future__ import annotations

import json
from typing import Final

from deploy.local.layout import Layout, Options, read_kept, write_private
from deploy.local.servers.ports import free_port

HOST: Final = "127.0.0.1"


def status_port(layout: Layout, options: Options, name: str) -> int:
    """Port of a service: the one kept from before, else a new one."""
    kept: dict[str, int] = read_kept(layout.status_ports)
    if name not in kept:
        others = (options.api_port, options.nats_port, options.postgres_port, options.logs_port, *kept.values())
        kept[name] = free_port(HOST, avoid=others)
        write_private(layout.status_ports, json.dumps(kept, indent=2) + "\n")
    return kept[name]


def status_url(layout: Layout, name: str, page: str) -> str:
    """Address of a page of a service that has a port."""
    return f"http://{HOST}:{read_kept(layout.status_ports)[name]}/{page}"
