"""The proxy: a request to ``/proxy/<service id>/...`` finds its service, passes the gate, and goes through.

Source: docs/reference/tasks-and-cli.md 4.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import parse_qs

import structlog

from libs.bus import Bus
from libs.clock import Clock
from libs.cluster.config import BASIC, AuthzConfig, TasksConfig
from libs.db.engine import Database
from libs.errors import InvalidRequest, PermissionDenied, Unauthenticated
from libs.serving.take_over import take_over_of
from libs.serving.time_limits import lift_time_limits
from libs.tasks.proxy_tokens import PageHolder, ProxyTokens
from services.api.access.forwarded import forwarded_of
from services.api.access.sessions import Sessions
from services.api.http.connection import ClientGone
from services.api.http.exchange import Exchange
from services.api.http.replies.reply import SECURITY_HEADERS
from services.api.proxy.activity import Activity
from services.api.proxy.connections import Connections
from services.api.proxy.credentials import Offer, OfferedIn, offers_of
from services.api.proxy.dial import NotReached
from services.api.proxy.gate import Gate, LetThrough, LoginNeeded
from services.api.proxy.headers import Headers
from services.api.proxy.pages.browsers import is_browser, opens_page
from services.api.proxy.pages.hosts import HostRole, Hosts, VisitedHost
from services.api.proxy.pages.task_responses import confined, policies
from services.api.proxy.paths import ProxyPath, parse
from services.api.proxy.requests.forwarding import Forwarding
from services.api.proxy.responses import (
    TICKET,
    cookie_for,
    cookie_path,
    exchange_ticket,
    redirect_to_base,
    redirect_to_login,
    redirect_to_main,
    redirect_to_tasks,
    refuse_unknown,
    say_not_reached,
    scheme_of,
    wants_page,
)
from services.api.proxy.server_tokens import put_server_token
from services.api.proxy.services import ProxiedService, Services
from services.api.proxy.settings import ProxySettings
from services.api.proxy.tunnels.websockets import WebSockets, Wish

TICKET_S: Final = 60
"""How long the redirect to the host name of tasks is good for."""
NO_ADDRESS: Final = TasksConfig()
_WITHOUT_FRAMES: Final = [(name, value) for name, value in SECURITY_HEADERS if name.lower() != b"x-frame-options"]

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
        addresses: TasksConfig = NO_ADDRESS,
    ) -> None:
        self.hosts = Hosts(addresses)
        self._clock = clock
        self._tokens = tokens
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
        by_proxy = forwarded_of(exchange.scope) is not None
        place = self.hosts.place(exchange.scope["headers"], scheme=scheme_of(exchange), by_proxy=by_proxy)
        if place.role is HostRole.TASKS:
            # For all that is answered here; none of it is a page of the main address.
            exchange.security_headers = [*_WITHOUT_FRAMES, *policies(place)]
            if await self._took_ticket(exchange, path, service):
                return
        admission = await self._admit(exchange, service, place)
        if admission is None:
            return
        offer = admission.offer
        if place.role is HostRole.MAIN and is_browser(exchange.headers) and not _is_in_header(offer):
            await self._send_elsewhere(exchange, service, admission, place)
            return
        if offer is not None:
            self._activity.note(service.task_id)
            if offer.is_proxy_token and service.server_token:
                put_server_token(exchange.scope, offered=offer.token, server_token=service.server_token)
        try:
            await self._pass(exchange, path, service, admission, place)
        except NotReached as error:
            log.info("proxy.not_reached", service=service.service_id, error=str(error)[:500])
            if exchange.status:
                raise ClientGone from error  # half a response is out, and only cutting it says so
            self._services.forget(service.task_id)
            await say_not_reached(exchange, service)

    async def _admit(self, exchange: Exchange, service: ProxiedService, place: VisitedHost) -> LetThrough | None:
        """None when the answer is out: browsers are led to the login."""
        offers = offers_of(exchange.scope["headers"], exchange.scope["query_string"])
        if place.role is HostRole.TASKS:
            offers = tuple(offer for offer in offers if not _is_login_of_browser(offer))
        try:
            return await self._gate.admit(service, offers)
        except Unauthenticated as error:
            if place.role is HostRole.TASKS and opens_page(exchange.scope["method"], exchange.headers):
                await redirect_to_main(exchange, place)
            elif isinstance(error, LoginNeeded) and wants_page(exchange):
                await redirect_to_login(exchange)
            else:
                raise
        return None

    async def _took_ticket(self, exchange: Exchange, path: ProxyPath, service: ProxiedService) -> bool:
        """Answers a request that has a ticket: a good one becomes a cookie."""
        query = (
            parse_qs(exchange.scope["query_string"].decode("latin-1"))
            if TICKET.encode() in exchange.scope["query_string"]
            else {}
        )
        if TICKET not in query:
            return False
        holder = self._tokens.page_holder(query[TICKET][0])
        now = self._clock.now().timestamp()
        is_good = holder is not None and holder.task_id == service.task_id and now < holder.until
        cookie = self._tokens.issue_page(holder._replace(until=0)) if holder is not None and is_good else ""
        await exchange_ticket(exchange, path, cookie=cookie)
        return True

    async def _send_elsewhere(
        self, exchange: Exchange, service: ProxiedService, admission: LetThrough, place: VisitedHost
    ) -> None:
        """Browsers see pages of tasks under the host name of these, with what holds for this task and login."""
        if not opens_page(exchange.scope["method"], exchange.headers):
            raise PermissionDenied(
                f"browsers find tasks at {place.tasks}; here requests are served that have a token in a header"
            )
        session, offer = await self._gate.session_of(admission), admission.offer
        if session is not None:
            until = int(self._clock.now().timestamp()) + TICKET_S
            ticket = self._tokens.issue_page(PageHolder(session, service.task_id, until))
            await redirect_to_tasks(exchange, place, ticket=ticket)
        else:
            of_cookie = offer is not None and offer.source is OfferedIn.COOKIE
            await redirect_to_tasks(exchange, place, token=offer.token if offer is not None and of_cookie else "")

    async def _pass(
        self, exchange: Exchange, path: ProxyPath, service: ProxiedService, admission: LetThrough, place: VisitedHost
    ) -> None:
        def finish(headers: Headers) -> list[tuple[bytes, bytes]]:
            return [*confined(headers, base=cookie_path(path), place=place), *cookie_for(exchange, path, admission)]

        take_over = take_over_of(exchange.scope)
        if service.port.proxy_tcp and take_over is None:
            raise InvalidRequest(f"service '{service.service_id}' is TCP: connect to it with a websocket")
        if service.target is None:
            raise NotReached("its address is not known")
        client = exchange.scope.get("client")
        address = client[0] if client else ""
        if take_over is not None:
            wish = Wish(
                service=service,
                target=service.target,
                admission=admission,
                take_over=take_over,
                finish=finish,
                address=address,
            )
            await self._websockets.open(exchange, wish)
            return
        with self.connections.during(service, admission, address=address):
            lift_time_limits(exchange.scope)  # uploads may pause for hours, and the drain is who ends them
            await self._forwarding.forward(exchange, service.target, finish=finish)


def _is_login_of_browser(offer: Offer) -> bool:
    """The cookie of the main address, which is worth nothing where pages of tasks are."""
    return offer.source is OfferedIn.COOKIE and not offer.is_proxy_token


def _is_in_header(offer: Offer | None) -> bool:
    return offer is not None and offer.source is OfferedIn.HEADER
