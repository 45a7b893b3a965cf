"""HTTP on one connection: uvicorn's protocol with limits on what comes in, and a response to every complete request.

Requests that follow one another without waiting are answered in order, a refusal after those before it. A client that
has closed its side still gets its answers (RFC 9112 9.6); one that has left looks the same until something is written
to it, so whoever only waits for something to happen is held for gone after a while.
"""

from __future__ import annotations

import asyncio
from functools import partial
from http import HTTPStatus
from typing import Any, Final, cast

import httptools
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from libs.serving.connections import Admission, ConnectionLimit, respond_unavailable
from libs.serving.flow_control import PipelineFlowControl
from libs.serving.heads import HeadMeter, RequestRefused
from libs.serving.keep_alive import keep_alive
from libs.serving.limits import HttpLimits
from libs.serving.read_timeouts import ReadPhase, ReadTimeouts
from libs.serving.take_over import EXTENSION as TAKE_OVER
from libs.serving.time_limits import EXTENSION as LIFT_TIME_LIMITS
from libs.serving.waiter_count import CountingEvent
from libs.serving.write_coalescing import CoalescingTransport
from libs.telemetry import counter

REFUSED = counter(
    "resolute_http_refused_total",
    "Requests that were refused for their form, or because they came too slowly",
    "status",
)

PIECE_BYTES: Final = 16 * 1024
"""What the parser gets at a time: bounds hold to within one piece."""
MAX_PIPELINED: Final = 16
"""Requests that may wait for the answer to one before them, before reading stops."""
FIRST_REQUEST_S: Final = 1.0
"""How long a server that stops waits for a request of a client that had connected, or begun one, before."""
HALF_CLOSED_TIMEOUT_S: Final = 3.0
"""How long a client that has closed its side, and is told nothing, counts as there."""


class HttpProtocol(HttpToolsProtocol):
    """One connection of a server whose protocols share ``connection_limit``."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: HttpLimits,
        connection_limit: ConnectionLimit,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._connection_limit = connection_limit
        self._tick_s = min(limits.head_s, limits.body_s, limits.linger_s, config.timeout_keep_alive)
        self._head = HeadMeter(limits)
        self.url = b""
        self.headers = []
        self._timeouts = ReadTimeouts(limits, idle_s=config.timeout_keep_alive, now=self.loop.time())
        self._running: RequestResponseCycle | None = None
        self._arriving: RequestResponseCycle | None = None
        """The request whose body is not complete."""
        self._unparsed = b""
        self._refusal: RequestRefused | None = None
        """Ends the connection, after the responses before it."""
        self._half_closed = False
        self._in_head = self._begins = False
        """Whether the parser is in a head, and whether a request began in the piece that it got last."""
        self._may_be_taken = False
        """Whether the newest request may take the connection."""
        self._serving: asyncio.Task[Any] | None = None
        """What answers the running request."""
        self._is_kept_alive = False
        self._outlives = self._is_stopping = False
        """Whether the running request goes on when the server stops, and whether it does."""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._coalescing = CoalescingTransport(transport, self.loop)
        super().connection_made(self._coalescing)
        self.flow = PipelineFlowControl(self._coalescing, is_full=lambda: bool(self.pipeline or self._unparsed))
        self._timer = self.loop.call_later(self._tick_s, self._check_deadline)
        match self._connection_limit.admit(len(self.connections)):
            case Admission.REFUSED:
                self.app = respond_unavailable
            case Admission.CLOSED:
                self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.pipeline.clear()
        self._unparsed = b""
        self._stop_timer()
        if self._running is not None and not self._running.response_complete:
            self._disconnect(self._running)

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """True keeps our side open, for the responses that are still to be sent."""
        self._drop_arriving()
        if self.scheme == "https" or not self._has_pending_response():  # asyncio cannot keep half of a TLS connection
            self._coalescing.bare()  # whoever calls us closes the transport below, with nothing held back
            return None
        if not self._half_closed:
            self._half_closed = True
            self.loop.call_later(HALF_CLOSED_TIMEOUT_S, self._close_if_gone, self._coalescing.written_bytes)
        return True

    def data_received(self, data: bytes) -> None:
        if self._unparsed:
            self._unparsed += data
        elif self._refusal is None:
            self._feed(data)

    def _should_upgrade_to_ws(self) -> bool:
        return False  # the application decides: a wish for an upgrade is a request like any other until then

    def _take_over(self, protocol: asyncio.Protocol) -> asyncio.Transport:
        """As ``TakeOver`` says."""
        if self.transport.is_closing() or self._half_closed or self._running is None:
            raise ConnectionError("the client has left")
        self._running.disconnected = True  # what is left to do for the request says nothing more to the client
        self._running = None
        self.connections.discard(self)
        self._stop_timer()
        transport, early, self._unparsed = self._coalescing.bare(), self._unparsed, b""
        self.flow.resume_reading()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if early:
            protocol.data_received(early)
        return transport

    def _lift_time_limits(self) -> None:
        """As ``libs.serving.time_limits`` says, of the running request."""
        if not self._is_kept_alive:
            keep_alive(self.transport)
            self._is_kept_alive = True
        if self._arriving is self._running:
            self._timeouts.lift_from_body()
        self._outlives = True
        if self._is_stopping:
            self._leave_server()

    def shutdown(self) -> None:
        """Told by the server that it stops: it waits a little for everything that belongs to it, and cuts the rest.

        Whoever connected in time is not cut before the request can have come: few clients repeat what was cut.
        """
        self._is_stopping = True
        if self._in_head or self.cycle is None:
            self.loop.call_later(FIRST_REQUEST_S, super().shutdown)
            return
        super().shutdown()
        if self._outlives:
            self._leave_server()

    def _leave_server(self) -> None:
        self.connections.discard(self)
        if self._serving is not None:
            self.tasks.discard(self._serving)

    # What the parser tells
    def on_message_begin(self) -> None:
        self._head.begin()
        self._in_head = self._begins = True
        self._may_be_taken = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head.complete(self.url, self.headers)
        self._in_head = False
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            self.cycle.keep_alive = self.cycle.keep_alive and not self._is_stopping
            self._arriving = self.cycle
            self.cycle.message_event = CountingEvent()
            extensions: dict[str, Any] = {LIFT_TIME_LIMITS: self._lift_time_limits}
            if self.cycle is self._running and self.parser.should_upgrade() and self._get_upgrade() == b"websocket":
                self._may_be_taken = True
                extensions[TAKE_OVER] = self._take_over
            cast(dict[str, Any], self.scope)["extensions"] = extensions
            self.headers = []  # those behind the body may not add to those that were already acted upon

    def on_body(self, body: bytes) -> None:
        self._head.told()
        self._timeouts.count_body(len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head.told()
        self._arriving = None
        super().on_message_complete()

    # What the application tells
    def on_response_complete(self) -> None:
        """In place of what it overrides, which would set and cancel a timer for each request."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        if self._unparsed:
            self.loop.call_soon(self._feed_unparsed)
        if self._has_pending_response():
            return
        if self._refusal is not None:
            self._send_refusal(self._refusal)
        elif self._half_closed:
            self.transport.close()
        elif self._arriving is not None:
            self._timeouts.begin_lingering(self.loop.time())
        elif self._timeouts.phase is ReadPhase.RESPONDING:
            self._timeouts.begin_keep_alive(self.loop.time())

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        self._outlives = False
        serving = self.loop.create_task(cycle.run_asgi(partial(self._serve, cycle, app)))
        serving.add_done_callback(self.tasks.discard)
        self.tasks.add(serving)
        self._serving = serving

    async def _serve(self, cycle: RequestResponseCycle, app: Any, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; one that is cut because the server stops is answered so that clients repeat it."""
        try:
            await app(scope, receive, send)
        except asyncio.CancelledError:
            if not self._is_stopping:
                raise
            if not cycle.response_started:
                await respond_unavailable(scope, receive, send)
            elif not cycle.response_complete:
                cycle.disconnected = True  # half of a response is out, and only a cut connection says so
                self.transport.close()

    def _has_pending_response(self) -> bool:
        return bool(self.pipeline) or (self._running is not None and not self._running.response_complete)

    # Reading
    def _feed(self, data: bytes) -> None:
        view = memoryview(data)
        start = 0
        while start < len(data) and self._refusal is None:
            if len(self.pipeline) >= MAX_PIPELINED:
                self._unparsed = data[start:]
                return
            piece = view[start : start + PIECE_BYTES]
            try:
                self._head.feed(len(piece))
                self._begins = False
                self.parser.feed_data(piece)
                self._head.check(self.url, self.headers)
                self._expect_next()
                start += len(piece)
            except httptools.HttpParserUpgrade as upgrade:
                start += upgrade.args[0]
                self._expect_next()  # a wish may be passed over (RFC 9110 7.8)
                if self._may_be_taken:
                    # What follows may be for whoever takes the connection, so nothing is made of it yet.
                    self._unparsed = data[start:]
                    self.flow.pause_reading()
                    return
            except httptools.HttpParserError as error:
                self._refuse(error.__context__ if isinstance(error.__context__, RequestRefused) else _malformed())
            except RequestRefused as refusal:
                self._refuse(refusal)

    def _expect_next(self) -> None:
        """Begin the time-out of what is read after a piece, where that is something else than before it."""
        if self._in_head:
            if self._begins:
                self._timeouts.begin_head(self.loop.time())
        elif self._arriving is not None:
            if self._begins or self._timeouts.phase is ReadPhase.HEAD:
                self._timeouts.begin_body(self.loop.time())
        elif self._has_pending_response():
            self._timeouts.begin_responding()
        elif self._timeouts.phase is not ReadPhase.KEEP_ALIVE:
            self._timeouts.begin_keep_alive(self.loop.time())

    def _feed_unparsed(self) -> None:
        if not self.transport.is_closing():
            data, self._unparsed = self._unparsed, b""
            self._feed(data)
            self.flow.resume_reading()

    # Ending
    def _refuse(self, refusal: RequestRefused) -> None:
        """Answer what cannot be understood, or does not come, once everything before it is answered."""
        REFUSED.labels(str(refusal.status.value)).inc()
        self._refusal = refusal
        self._unparsed = b""
        begun = self._arriving is self._running and self._arriving is not None and self._arriving.response_started
        self._drop_arriving()
        if begun:
            self.transport.close()
        elif not self._has_pending_response():
            self._send_refusal(refusal)

    def _drop_arriving(self) -> None:
        """Forget the request whose body will never be complete; those before it are answered."""
        cut, self._arriving = self._arriving, None
        if cut is None or cut.response_complete:
            return
        if cut is self._running:
            self._running = None
            self._disconnect(cut)
        else:
            self.pipeline.popleft()  # the newest

    def _disconnect(self, cycle: RequestResponseCycle) -> None:
        cycle.disconnected = True
        cycle.message_event.set()

    def _send_refusal(self, refusal: RequestRefused) -> None:
        """Answer, and let the client read it: closing at once would take the answer back while it still sends."""
        text = str(refusal).encode()
        head = [
            *self.server_state.default_headers,
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(text)).encode()),
            (b"connection", b"close"),
        ]
        lines = [STATUS_LINE[refusal.status], *(name + b": " + value + b"\r\n" for name, value in head)]
        self.transport.write(b"".join([*lines, b"\r\n", text]))
        if self._half_closed:
            self.transport.close()
        self._timeouts.begin_lingering(self.loop.time())
        self._set_timer()

    def _check_deadline(self) -> None:
        now = self.loop.time()
        if self.flow.read_paused:
            self._timeouts.restart(now)
        if self.transport.is_closing() and self._timeouts.phase is not ReadPhase.LINGERING:
            self._timeouts.begin_lingering(now)
        elif self._timeouts.deadline is not None and self._timeouts.deadline <= now:
            self._time_out(now)
        self._set_timer()

    def _time_out(self, now: float) -> None:
        if self.transport.is_closing():
            self.transport.abort()  # its last answer is not taken
        elif self._timeouts.phase in (ReadPhase.HEAD, ReadPhase.BODY):
            self._timeouts.begin_responding()
            self._refuse(RequestRefused(HTTPStatus.REQUEST_TIMEOUT, "The request did not come in time."))
        else:
            self._timeouts.begin_lingering(now)
            self.transport.close()

    def _close_if_gone(self, written_before: int) -> None:
        """Close when the application waits for the client alone, and nothing has been on its way to it since."""
        if self.transport.is_closing():
            return
        written = self._coalescing.written_bytes
        if self._is_waited_for() and written == written_before and not self._coalescing.get_write_buffer_size():
            self.transport.close()
        else:
            self.loop.call_later(HALF_CLOSED_TIMEOUT_S, self._close_if_gone, written)

    def _is_waited_for(self) -> bool:
        """Whether the application waits for more of a body, or for the end of the connection."""
        return self._running is not None and cast(CountingEvent, self._running.message_event).waiters > 0

    def _set_timer(self) -> None:
        self._stop_timer()
        soon = self.loop.time() + self._tick_s
        due = self._timeouts.deadline
        self._timer = self.loop.call_at(soon if due is None else min(due, soon), self._check_deadline)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _malformed() -> RequestRefused:
    return RequestRefused(HTTPStatus.BAD_REQUEST, "Invalid HTTP request received.")
