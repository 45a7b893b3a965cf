"""The proxy: a request to ``/proxy/<service id>/...`` finds its service, passes the gate, and goes through.

Source: docs/reference/tasks-and-cli.md 4.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from libs.bus import Bus
from libs.clock import Clock
from libs.cluster.config import BASIC, AuthzConfig
from libs.db.engine import Database
from libs.errors import InvalidRequest
from libs.serving.take_over import take_over_of
from libs.serving.time_limits import lift_time_limits
from libs.tasks.proxy_tokens import ProxyTokens
from services.api.access.sessions import Sessions
from services.api.http.connection import ClientGone
from services.api.http.exchange import Exchange
from services.api.proxy.activity import Activity
from services.api.proxy.connections import Connections
from services.api.proxy.credentials import offers_of
from services.api.proxy.dial import NotReached
from services.api.proxy.gate import Gate, LetThrough, LoginNeeded
from services.api.proxy.paths import ProxyPath, parse
from services.api.proxy.requests.forwarding import Forwarding
from services.api.proxy.responses import (
    cookie_for,
    redirect_to_base,
    redirect_to_login,
    refuse_unknown,
    say_not_reached,
    wants_page,
)
from services.api.proxy.server_tokens import put_server_token
from services.api.proxy.services import ProxiedService, Services
from services.api.proxy.settings import ProxySettings
from services.api.proxy.tunnels.websockets import WebSockets, Wish

log = structlog.get_logger()


class Proxy:
    """Answers everything below ``/proxy/`` in this replica."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        sessions: Sessions,
        tokens: ProxyTokens,
        settings: ProxySettings,
        authz: AuthzConfig = BASIC,
    ) -> None:
        self._services = Services(db)
        self._gate = Gate(db=db, sessions=sessions, tokens=tokens, authz=authz, demands_token=settings.demand_token)
        self._activity = Activity(db=db, clock=clock)
        self.connections = Connections(gate=self._gate, activity=self._activity, settings=settings)
        self._websockets = WebSockets(connections=self.connections, settings=settings)
        self._forwarding = Forwarding(dial_timeout_s=settings.dial_timeout_s)

    @asynccontextmanager
    async def listening(self, bus: Bus) -> AsyncIterator[None]:
        """What requests rely on, while the block runs. Raises Unavailable when the bus takes no subscription."""
        async with self._services.listening(bus), self._forwarding:
            yield

    async def run(self) -> None:
        """Note activity, and cut what may not be any more, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._activity.run(), name="activity")
            tasks.create_task(self.connections.run(), name="connections")

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one request. Errors are raised, to be answered like those of all that is outside of /api/v1."""
        path = parse(exchange.scope["raw_path"])
        service = None if path is None else await self._services.find(path.service_id)
        if path is None or service is None:
            await refuse_unknown(exchange, "" if path is None else path.service_id)
            return
        if not path.is_whole:
            await redirect_to_base(exchange, path)
            return
        try:
            offers = offers_of(exchange.scope["headers"], exchange.scope["query_string"])
            admission = await self._gate.admit(service, offers)
        except LoginNeeded:
            if not wants_page(exchange):
                raise
            await redirect_to_login(exchange)
            return
        offer = admission.offer
        if offer is not None:
            self._activity.note(service.task_id)
            if offer.is_proxy_token and service.server_token:
                put_server_token(exchange.scope, offered=offer.token, server_token=service.server_token)
        try:
            await self._pass(exchange, path, service, admission)
        except NotReached as error:
            log.info("proxy.not_reached", service=service.service_id, error=str(error)[:500])
            if exchange.status:
                raise ClientGone from error  # half a response is out, and only cutting it says so
            self._services.forget(service.task_id)
            await say_not_reached(exchange, service)

    async def _pass(self, exchange: Exchange, path: ProxyPath, service: ProxiedService, admission: LetThrough) -> None:
        take_over = take_over_of(exchange.scope)
        if service.port.proxy_tcp and take_over is None:
            raise InvalidRequest(f"service '{service.service_id}' is TCP: connect to it with a websocket")
        if service.target is None:
            raise NotReached("its address is not known")
        client = exchange.scope.get("client")
        address = client[0] if client else ""
        if take_over is not None:
            wish = Wish(
                service=service, target=service.target, admission=admission, take_over=take_over, address=address
            )
            await self._websockets.open(exchange, wish)
            return
        with self.connections.during(service, admission, address=address):
            lift_time_limits(exchange.scope)  # uploads may pause for hours, and the drain is who ends them
            await self._forwarding.forward(exchange, service.target, added=cookie_for(exchange, path, admission))
