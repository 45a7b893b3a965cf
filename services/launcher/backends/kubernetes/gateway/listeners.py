"""Ports of tasks on a Gateway that many share: which are free, and whose the others are.

A listener ``det-<port>`` is told by two annotations of the Gateway: the one that the reference writes too, and one of
ours that says which launcher made it and for what. Only listeners with both are ever removed, so several launchers,
installations and people may edit one Gateway. Source: docs/reference/kubernetes.md 4;
https://gateway-api.sigs.k8s.io/reference/spec/.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from libs.cluster.config import TaskGatewayConfig
from libs.errors import InvalidRequest
from libs.events.observations import Address
from services.launcher.backends.kubernetes.manifests.names import port_name

Json = dict[str, Any]

ALLOCATION_NOTE: Final = "determined.ai/det-gateway-port-"
"""Followed by the port: annotation with the allocation."""
CLAIM_NOTE: Final = "resolute/gateway-port-"
"""Followed by the port: annotation with a ``Claim``."""
ROUTE_VERSION: Final = "gateway.networking.k8s.io/v1alpha2"


class Claim(Struct, frozen=True, kw_only=True):
    """What a listener is for."""

    port: int
    """Of the Gateway."""
    launcher: str
    allocation: str
    namespace: str
    """Of the Job, the Service and the route."""
    job: str
    index: int
    """Of the port among those of the task that are proxied."""
    task_port: int


class Wanted(Struct, frozen=True, kw_only=True):
    """Ports of one task that are to be proxied."""

    launcher: str
    allocation: str
    namespace: str
    job: str
    task_ports: tuple[int, ...]


def free_ports(used: Collection[int], *, start: int, end: int, count: int) -> tuple[int, ...]:
    """The ``count`` lowest ports from ``start`` to ``end``, both included, that are not used; they ascend.

    Raises InvalidRequest when there are not as many.
    """
    found: list[int] = []
    for port in range(start, end + 1):
        if len(found) == count:
            break
        if port not in used:
            found.append(port)
    if len(found) < count:
        raise InvalidRequest(f"not enough free ports in range {start}-{end}")
    return tuple(found)


def claims_of(gateway: Json, launcher: str) -> tuple[Claim, ...]:
    """Claims of a launcher by port, with their listeners or without. What is not readable is somebody else's."""
    notes = _notes(gateway)
    found = []
    for key, text in notes.items():
        claim = _read(text) if key.startswith(CLAIM_NOTE) else None
        if claim is None or claim.launcher != launcher or key != f"{CLAIM_NOTE}{claim.port}":
            continue
        if notes.get(f"{ALLOCATION_NOTE}{claim.port}") == claim.allocation:
            found.append(claim)
    return tuple(sorted(found, key=lambda claim: claim.port))


def open_claims(gateway: Json, launcher: str) -> tuple[Claim, ...]:
    """Claims of a launcher whose listeners are there."""
    names = {(listener.get("name"), listener.get("port")) for listener in _listeners(gateway)}
    return tuple(claim for claim in claims_of(gateway, launcher) if (listener_name(claim.port), claim.port) in names)


def with_listeners(gateway: Json, wanted: Wanted, *, start: int, end: int) -> Json:
    """The Gateway with a listener for each wanted port, on the lowest free ports from ``start`` to ``end``.

    It comes back equal where they are there already; ``gateway`` is left unchanged. Raises InvalidRequest when there
    are not enough free ports.
    """
    before = [claim for claim in claims_of(gateway, wanted.launcher) if claim.allocation == wanted.allocation]
    there = [claim for claim in open_claims(gateway, wanted.launcher) if claim.allocation == wanted.allocation]
    if before and there == before == _claims(wanted, [claim.port for claim in before]):
        return gateway
    rest = without_listeners(gateway, before)
    used = {int(listener["port"]) for listener in _listeners(rest)}
    claims = _claims(wanted, free_ports(used, start=start, end=end, count=len(wanted.task_ports)))
    notes = dict(_notes(rest))
    for claim in claims:
        notes[f"{ALLOCATION_NOTE}{claim.port}"] = claim.allocation
        notes[f"{CLAIM_NOTE}{claim.port}"] = msgspec.json.encode(claim).decode()
    return _edited(rest, notes, [*_listeners(rest), *(_listener(claim.port) for claim in claims)])


def without_listeners(gateway: Json, claims: Collection[Claim]) -> Json:
    """The Gateway without the listeners of claims and their annotations; it comes back equal where there are none."""
    # Read again: since the claims were seen, their ports may have become somebody else's.
    mine = {claim for launcher in {claim.launcher for claim in claims} for claim in claims_of(gateway, launcher)}
    ports = {claim.port for claim in mine & set(claims)}
    gone = {f"{prefix}{port}" for port in ports for prefix in (ALLOCATION_NOTE, CLAIM_NOTE)}
    names = {listener_name(port) for port in ports}
    notes = {key: text for key, text in _notes(gateway).items() if key not in gone}
    kept = [
        listener
        for listener in _listeners(gateway)
        if listener.get("port") not in ports or listener.get("name") not in names
    ]
    return _edited(gateway, notes, kept) if ports else gateway


def tcp_route(service: Json, claim: Claim, config: TaskGatewayConfig) -> Json:
    """The route from a listener to a Service; always TCP, for what tasks speak is theirs. Named like the Service."""
    parent = {
        "namespace": config.gateway_namespace,
        "name": config.gateway_name,
        "port": claim.port,
        "sectionName": listener_name(claim.port),
    }
    backend = {"kind": "Service", "name": service["metadata"]["name"], "port": claim.task_port}
    return {
        "apiVersion": ROUTE_VERSION,
        "kind": "TCPRoute",
        "metadata": service["metadata"],
        "spec": {"parentRefs": [parent], "rules": [{"backendRefs": [backend]}]},
    }


def addresses(claims: Collection[Claim], config: TaskGatewayConfig) -> tuple[Address, ...]:
    """Where the ports of a task are reached, in the order in which the task has them."""
    ip = config.gateway_ip
    return tuple(
        Address(container_ip=ip, container_port=claim.task_port, host_ip=ip, host_port=claim.port)
        for claim in sorted(claims, key=lambda claim: claim.index)
    )


def not_as_expected(found: Collection[Address], requested: int, reason: str) -> str:
    """What the log of a task says that has fewer ports proxied than it wants (docs/reference/tasks-and-cli.md 4.1)."""
    listed = ", ".join(f"{address.host_ip}:{address.host_port}" for address in found)
    return f"did not proxy as expected {len(found)} (found addrs [{listed}], requested {requested}): {reason}"


def listener_name(port: int) -> str:
    return f"det-{port}"


def route_name(claim: Claim) -> str:
    return port_name(claim.job, claim.index)


def _listener(port: int) -> Json:
    everywhere = {"namespaces": {"from": "All"}}
    return {"name": listener_name(port), "port": port, "protocol": "TCP", "allowedRoutes": everywhere}


def _claims(wanted: Wanted, ports: Sequence[int]) -> list[Claim]:
    if len(ports) != len(wanted.task_ports):
        return []
    return [
        Claim(
            port=port,
            launcher=wanted.launcher,
            allocation=wanted.allocation,
            namespace=wanted.namespace,
            job=wanted.job,
            index=index,
            task_port=task_port,
        )
        for index, (port, task_port) in enumerate(zip(ports, wanted.task_ports, strict=True))
    ]


def _read(text: str) -> Claim | None:
    try:
        return msgspec.json.decode(text, type=Claim)
    except msgspec.DecodeError:
        return None


def _notes(gateway: Json) -> dict[str, str]:
    return gateway["metadata"].get("annotations") or {}


def _listeners(gateway: Json) -> list[Json]:
    return gateway["spec"].get("listeners") or []


def _edited(gateway: Json, notes: dict[str, str], listeners: list[Json]) -> Json:
    return {
        **gateway,
        "metadata": {**gateway["metadata"], "annotations": notes},
        "spec": {**gateway["spec"], "listeners": listeners},
    }
