"""Begins TLS on each connection of a server, and says which handshakes failed, why and whose.

A server that asyncio or uvloop gives TLS to is told of no handshake that fails. A task that does not trust the
certificate fails there again and again, though, and says nothing anywhere else: only its server can.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, cast

import uvloop.loop

from libs.telemetry import counter

TIMEOUT_S: Final = 60.0
"""How long a client may take for its handshake."""
TOLD_EVERY_S: Final = 60.0
"""How soon failures of the same address are told again."""
MOST_ADDRESSES: Final = 500
"""How many addresses are remembered, and how many failures wait to be told."""

FAILED = counter(
    "resolute_tls_handshake_failures_total",
    "TLS handshakes that failed, by reason: untrusted (the client does not accept the certificate), plain (it spoke "
    "HTTP), protocol, timeout, or closed (it left, as probes of ports do)",
    "reason",
)

Reason = Literal["untrusted", "plain", "protocol", "timeout", "closed"]
_TOLD: Final[frozenset[Reason]] = frozenset({"untrusted", "plain", "protocol"})
"""What clients do that somebody has to repair."""
_ALERTS_OF_DISTRUST: Final = ("UNKNOWN_CA", "BAD_CERTIFICATE", "CERTIFICATE_UNKNOWN", "CERTIFICATE_EXPIRED")


class HandshakeFailure(NamedTuple):
    address: str
    reason: Reason
    error: str


class HandshakeFailures:
    """Counts failures, and keeps those that are worth a line in a log: of each address one a minute."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._told_at: dict[str, float] = {}
        """By address, the one first that was told longest ago."""
        self._to_tell: asyncio.Queue[HandshakeFailure] = asyncio.Queue(MOST_ADDRESSES)

    def add(self, address: str, error: BaseException) -> None:
        reason = reason_of(error)
        FAILED.labels(reason).inc()
        now = self._monotonic()
        if reason not in _TOLD or now - self._told_at.get(address, -TOLD_EVERY_S) < TOLD_EVERY_S:
            return
        if self._to_tell.full():
            return
        self._told_at.pop(address, None)
        self._told_at[address] = now
        if len(self._told_at) > MOST_ADDRESSES:
            del self._told_at[next(iter(self._told_at))]
        self._to_tell.put_nowait(HandshakeFailure(address, reason, str(error)))

    async def next(self) -> HandshakeFailure:
        """Wait for the next failure that is worth a line."""
        return await self._to_tell.get()


def reason_of(error: BaseException) -> Reason:
    """Why a handshake failed, as far as the server can know."""
    if isinstance(error, TimeoutError | ConnectionAbortedError):
        return "timeout"
    if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return "closed"
    said = (error.reason or "").upper()
    if any(alert in said for alert in _ALERTS_OF_DISTRUST):
        return "untrusted"
    return "plain" if said in ("HTTP_REQUEST", "HTTPS_PROXY_REQUEST") else "protocol"


class TlsStart(asyncio.Protocol):
    """Of a new TCP connection: has the loop's own TLS take it over, and that speak to the protocol of ``make``.

    What ``create_server(ssl=...)`` does, which would not say how it ended. The classes that do TLS are no public
    interface of either loop, but the only way: ``start_tls`` returns after the first bytes may have come.
    """

    def __init__(
        self, make: Callable[[], asyncio.Protocol], *, context: ssl.SSLContext, failures: HandshakeFailures
    ) -> None:
        self._make = make
        self._context = context
        self._failures = failures

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)  # uvloop's are none of asyncio's classes
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if isinstance(peer, tuple) else "unknown"
        loop = asyncio.get_running_loop()
        shaken: asyncio.Future[None] = loop.create_future()

        def tell(done: asyncio.Future[None]) -> None:
            if not done.cancelled() and (error := done.exception()) is not None:
                self._failures.add(address, error)

        shaken.add_done_callback(tell)
        made = _tls_class(loop)(
            loop, self._make(), self._context, shaken, server_side=True, ssl_handshake_timeout=TIMEOUT_S
        )
        transport.set_protocol(made)
        made.connection_made(transport)


def _tls_class(loop: asyncio.AbstractEventLoop) -> Any:
    return uvloop.loop.SSLProtocol if isinstance(loop, uvloop.loop.Loop) else SSLProtocol
