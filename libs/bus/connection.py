"""One connection to NATS: waits at the start, reconnects for ever, tells who may have missed something.

NATS forgets what it sent while a client was away, so whoever listens has to look again afterwards: ``on_gap`` is the
one place where that is announced.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, TypeVar

import structlog
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js import JetStreamContext

from libs.bus.settings import BusSettings
from libs.errors import Unavailable
from libs.secret_files import read_secret
from libs.waiting import wait_until_set

log = structlog.get_logger()

_T = TypeVar("_T")

RECONNECT_WAIT_S: Final = 0.25
"""Between two attempts to connect; somewhat more in effect, as every attempt takes its time."""
PING_INTERVAL_S: Final = 10
"""Two pings without an answer end a connection: a server that vanished without a word is noticed in half a minute."""
FLUSH_S: Final = 2.0
_FLUSH_GIVEN_UP_S: Final = 10 * PING_INTERVAL_S
"""Much longer than it takes to find that the server answers to nothing, and to connect anew."""

ERRORS_LOGGED_EVERY_S: Final = 5.0


class Connection:
    """A NATS client with its JetStream context, and the listeners that want to know of gaps."""

    def __init__(self, settings: BusSettings) -> None:
        self.settings = settings
        self.client = Client()
        self.jetstream = JetStreamContext(self.client, timeout=settings.request_timeout_s)
        self._listeners: dict[int, Callable[[], None]] = {}
        self._flushes: set[asyncio.Future[None]] = set()
        self._next_listener = 0
        self._connected = asyncio.Event()
        self._lost = asyncio.Event()
        self._closing = False
        self._last_error = ""
        self._last_error_at = 0.0

    def on_gap(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` after every reconnect and when the connection ends; returns what unregisters it.

        Listeners must not block; they wake whoever has to look again.
        """
        ident = self._next_listener
        self._next_listener += 1
        self._listeners[ident] = listener
        return lambda: _forget(self._listeners, ident)

    async def wait_connected(self, timeout_s: float) -> None:
        """Return as soon as there is a connection. Raises Unavailable after ``timeout_s``, or when it is closed."""
        if self.client.is_closed:
            raise Unavailable("the bus connection is closed")
        if self.client.is_connected:
            return
        if not await wait_until_set(self._connected, timeout_s=timeout_s):
            raise Unavailable("the bus is not connected")
        if self.client.is_closed:
            raise Unavailable("the bus connection is closed")

    async def while_connected(self, call: Coroutine[Any, Any, _T]) -> _T:
        """The result of ``call``, or Unavailable as soon as the connection it was made on is lost.

        The answer to what was sent before cannot come any more then, and its own timeout would only waste time. Without
        a connection there is nothing to wait for.
        """
        if not self.client.is_connected:
            call.close()
            raise Unavailable("the bus is not connected")
        # In a task of its own also for the reason that ``apart`` gives.
        lost = asyncio.ensure_future(self._lost.wait())
        work = asyncio.ensure_future(call)
        try:
            await asyncio.wait((work, lost), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise Unavailable("the bus connection was lost")
            return work.result()
        finally:
            lost.cancel()
            work.cancel()

    async def open(self) -> None:
        """Connect, trying again until ``connect_timeout_s`` is over. Raises Unavailable then."""
        settings = self.settings
        try:
            async with asyncio.timeout(settings.connect_timeout_s):
                await apart(self._connect())
        except TimeoutError as error:
            raise Unavailable(f"the bus does not answer at {_without_password(settings.url)}") from error
        self._connected.set()
        log.info("bus.connected", url=_without_password(settings.url))

    async def _connect(self) -> None:
        settings = self.settings
        await self.client.connect(
            servers=settings.url.split(","),
            name=settings.name,
            error_cb=self._on_error,
            disconnected_cb=self._on_disconnected,
            reconnected_cb=self._on_reconnected,
            closed_cb=self._on_closed,
            connect_timeout=5,
            reconnect_time_wait=RECONNECT_WAIT_S,  # type: ignore[arg-type]  # fractions work, see its sleep()
            max_reconnect_attempts=-1,
            ping_interval=PING_INTERVAL_S,
            max_outstanding_pings=2,
            inbox_prefix=settings.inbox_prefix,
            **_credentials(settings),
        )

    async def flush(self, *, timeout_s: float = FLUSH_S) -> None:
        """Wait until the server has read what was sent.

        Raises TimeoutError, NatsError or OSError when that is not known.
        The client library stops reading from the server when the answer comes to a flush that nobody awaits any more,
        so each goes on to its end, whatever becomes of its caller. A lost connection is found before that.
        """
        flushing = asyncio.ensure_future(self.client.flush(timeout=_FLUSH_GIVEN_UP_S))
        self._flushes.add(flushing)
        flushing.add_done_callback(self._flushed)
        done, _ = await asyncio.wait((flushing,), timeout=timeout_s)
        if not done:
            raise TimeoutError("the bus has not answered to a flush")
        flushing.result()

    def _flushed(self, flushing: asyncio.Future[None]) -> None:
        self._flushes.discard(flushing)
        if not flushing.cancelled():
            flushing.exception()  # its caller has it, or there is none

    async def close(self) -> None:
        """Send what is still buffered and close. Subscriptions have ended before, with their owners."""
        self._closing = True
        if self.client.is_connected:
            try:
                await self.flush()
            except (NatsError, OSError, TimeoutError) as error:
                log.warning("bus.flush_failed", error=repr(error))
        await apart(self.client.close())
        for flushing in self._flushes:
            flushing.cancel()

    async def _on_error(self, error: Exception) -> None:
        now = asyncio.get_running_loop().time()
        # A server that is down is tried several times a second; one line per while says it all.
        if repr(error) != self._last_error or now - self._last_error_at > ERRORS_LOGGED_EVERY_S:
            self._last_error, self._last_error_at = repr(error), now
            log.warning("bus.error", error=repr(error))
            self._read_authorities()

    async def _on_disconnected(self) -> None:
        self._connected.clear()
        self._lost.set()
        # Calls on the old connection keep theirs. The next connection takes calls before ``_on_reconnected`` runs.
        self._lost = asyncio.Event()
        if not self._closing:
            log.warning("bus.disconnected")
            self._read_authorities()

    def _read_authorities(self) -> None:
        """Trust what ``ca_file`` holds now in the next attempts; the client library keeps what it was given before."""
        if self.settings.ca_file is None:
            return
        try:
            self.client.options["tls"] = ssl.create_default_context(cafile=self.settings.ca_file)
        except OSError as error:
            log.warning("bus.ca_file_not_read", file=self.settings.ca_file, error=str(error))

    async def _on_reconnected(self) -> None:
        self._connected.set()
        log.info("bus.reconnected")
        self._announce_gap()

    async def _on_closed(self) -> None:
        if not self._closing:
            log.error("bus.closed", error=repr(self.client.last_error))
        self._lost.set()
        self._connected.set()  # wakes wait_connected, which finds the client closed
        self._announce_gap()

    def _announce_gap(self) -> None:
        for listener in list(self._listeners.values()):
            listener()


async def apart(call: Coroutine[Any, Any, _T]) -> _T:
    """The result of ``call``, which runs in a task of its own; cancelling the caller cancels both, without fail.

    The client library swallows cancellations: in ``asyncio.wait_for``, before Python 3.12, when the answer comes in the
    same moment (bpo-37658), and while it waits for room in its buffer. A loop would go on then that was told to end,
    and whoever waits for its end wait for ever. So every call that may wait for the server is made through here or
    through ``while_connected``.
    """
    task = asyncio.ensure_future(call)
    try:
        await asyncio.wait((task,))
        return task.result()
    finally:
        task.cancel()


def _forget(listeners: dict[int, Callable[[], None]], ident: int) -> None:
    listeners.pop(ident, None)


def _without_password(url: str) -> str:
    return re.sub(r"//[^/@,]*@", "//", url)


def _credentials(settings: BusSettings) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if settings.credentials_file is not None:
        options["user_credentials"] = settings.credentials_file
    elif settings.token is not None:
        options["token"] = settings.token
    elif settings.user is not None:
        options["user"] = settings.user
        file = settings.password_file
        options["password"] = (lambda: read_secret(file)) if file is not None else settings.password or ""
    if settings.ca_file is not None:
        options["tls"] = ssl.create_default_context(cafile=settings.ca_file)
    return options


@asynccontextmanager
async def open_connection(settings: BusSettings) -> AsyncIterator[Connection]:
    """A connection for the duration of the block."""
    connection = Connection(settings)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(connection.close)
        await connection.open()
        yield connection
