"""Where Prometheus finds the exporters of nodes: of GPUs (DCGM) and of containers (cAdvisor). Pure.

One group of targets for each node, so that nothing is scraped twice. The pools of a node that belongs to several are
joined by commas. Source: docs/reference/platform.md 14; https://prometheus.io/docs/prometheus/latest/http_sd/.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from libs.events.capacity import PoolCapacity

DCGM_PORT: Final = 9400
CADVISOR_PORT: Final = 8080


class TargetGroup(Struct, frozen=True, kw_only=True):
    targets: tuple[str, ...]
    labels: dict[str, str]


def scrape_targets(capacity: Iterable[PoolCapacity]) -> list[TargetGroup]:
    """A group for every node that has an address, by name of the node."""
    pools: dict[str, list[str]] = defaultdict(list)
    addresses: dict[str, Sequence[str]] = {}
    for pool in capacity:
        for node in pool.nodes:
            pools[node.name].append(pool.pool)
            addresses.setdefault(node.name, node.addresses)
    return [
        TargetGroup(
            targets=tuple(f"{host}:{port}" for port in (DCGM_PORT, CADVISOR_PORT)),
            labels={"det_agent_id": name, "det_resource_pool": ",".join(sorted(pools[name]))},
        )
        for name in sorted(addresses)
        if (host := _host(addresses[name]))
    ]


def _host(addresses: Sequence[str]) -> str:
    """An IP address rather than a name, which a Prometheus elsewhere may not resolve; empty where there is neither."""
    for address in addresses:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            continue
        return f"[{found}]" if found.version == 6 else str(found)
    return addresses[0] if addresses else ""
