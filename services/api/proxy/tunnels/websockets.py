"""Websockets to tasks: the bytes of the client's connection go to a server that speaks websocket, or to plain TCP."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from libs.errors import InvalidRequest, Unavailable
from libs.serving.take_over import TakeOver
from libs.serving.time_limits import lift_time_limits
from services.api.access.forwarded import forwarded_of
from services.api.access.own_pages import require_own_websocket
from services.api.http.connection import ClientGone
from services.api.http.exchange import Exchange
from services.api.http.upgrades import accepted
from services.api.proxy.connections import Connections
from services.api.proxy.credentials import OfferedIn
from services.api.proxy.dial import NotReached, dial
from services.api.proxy.gate import LetThrough
from services.api.proxy.headers import Finish, to_client, to_task
from services.api.proxy.responses import send_response
from services.api.proxy.services import ProxiedService
from services.api.proxy.settings import ProxySettings
from services.api.proxy.targets import Target
from services.api.proxy.tunnels.ends import ClientEnd, TunnelEnd, join
from services.api.proxy.tunnels.handshake import Handshake
from services.api.proxy.tunnels.inbox import Inbox
from services.api.proxy.tunnels.pings import PingedEnd
from services.api.proxy.tunnels.tcp import TcpEnd, WebSocketEnd

_SWITCHING: Final = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a request for a websocket that passed the gate leads to."""

    service: ProxiedService
    target: Target
    admission: LetThrough
    take_over: TakeOver
    finish: Finish
    """What the client gets of the headers of the task's response."""
    address: str
    """Of the client; empty when that is not known."""


class WebSockets:
    """Opens tunnels for requests that passed the gate."""

    def __init__(self, *, connections: Connections, settings: ProxySettings) -> None:
        self._connections = connections
        self._settings = settings

    async def open(self, exchange: Exchange, wish: Wish) -> None:
        """Open a tunnel, or send the response of the task that does not want one.

        Raises InvalidRequest, PermissionDenied, NotReached, ClientGone, and Unavailable when there are too many.
        """
        self._check_origin(exchange, wish)
        lift_time_limits(exchange.scope)  # an api that ends lets handshakes come to their end, as it does tunnels
        await (self._to_tcp if wish.service.port.proxy_tcp else self._to_websocket)(exchange, wish)

    def _check_origin(self, exchange: Exchange, wish: Wish) -> None:
        """Pages of other sites may open websockets, and browsers add our cookies to them."""
        offer = wish.admission.offer
        by_cookie = offer is not None and offer.source is OfferedIn.COOKIE
        if wish.service.port.proxy_tcp or by_cookie:
            require_own_websocket("connect to this service", exchange.headers, forwarded_of(exchange.scope))

    async def _to_tcp(self, exchange: Exchange, wish: Wish) -> None:
        head = accepted(exchange.scope["headers"])
        if head is None:
            raise InvalidRequest("Sec-WebSocket-Key is missing, or Sec-WebSocket-Version is not 13")
        with self._connections.during(wish.service, wish.admission, address=wish.address):
            inbox = await dial(Inbox, wish.target, timeout_s=self._settings.dial_timeout_s)
        client = WebSocketEnd(head, ping_interval_s=self._settings.ping_interval_s)
        self._join(client, TcpEnd(), inbox, exchange, wish)

    async def _to_websocket(self, exchange: Exchange, wish: Wish) -> None:
        scope = exchange.scope
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        with self._connections.during(wish.service, wish.admission, address=wish.address):
            inbox = await dial(Inbox, wish.target, timeout_s=self._settings.dial_timeout_s)
        try:
            handshake = Handshake(inbox)
            with self._connections.during(wish.service, wish.admission, address=wish.address):
                answer = await handshake.request(
                    scope["raw_path"] + query, to_task(scope["headers"], client=wish.address, scheme=scope["scheme"])
                )
                if answer.status != HTTPStatus.SWITCHING_PROTOCOLS:
                    await send_response(exchange, answer.status, answer.headers, handshake.body(), wish.finish)
                    inbox.transport.abort()
                    return
            if inbox.transport.is_closing():
                raise NotReached("the connection was closed with its answer")
            lines = [b"%b: %b\r\n" % header for header in wish.finish(to_client(answer.headers, status=answer.status))]
            head = b"".join([_SWITCHING, *lines, b"\r\n"])
            client = PingedEnd(head, answer.early, ping_interval_s=self._settings.ping_interval_s)
            self._join(client, TunnelEnd(), inbox, exchange, wish)
        except BaseException:
            inbox.transport.abort()
            raise

    def _join(self, client: ClientEnd, task: TunnelEnd, inbox: Inbox, exchange: Exchange, wish: Wish) -> None:
        """Nothing waits in here, so nothing can come in while only one of the two ends is there."""
        join(client, task)
        task.connection_made(inbox.transport)
        try:
            connection = self._connections.add(wish.service, wish.admission, cut=client.cut_both, address=wish.address)
            client.on_end = connection.closed
            try:
                wish.take_over(client)
            except ConnectionError as error:
                connection.closed()
                raise ClientGone from error
        except (Unavailable, ClientGone):
            inbox.transport.abort()
            raise
        exchange.status = HTTPStatus.SWITCHING_PROTOCOLS
        inbox.hand_over(task)
