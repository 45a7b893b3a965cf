"""All subscribers of this replica: who is let in, what they hear from the bus, and how they are sent away.

Changes are rows of PostgreSQL, whichever replica made them; events on the bus say when to look. A subscriber that was
cut off comes again to any replica, and says what it knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import msgspec
import structlog

from libs.bus import Bus, CoreMessage
from libs.db.engine import Database
from libs.errors import Unavailable
from libs.events import subjects
from libs.events.changes import ModelChanged
from libs.serving.take_over import TakeOver
from libs.telemetry import gauge
from services.api.access.credentials import Credentials
from services.api.access.principal import Principal
from services.api.access.rights.rights import UserRights
from services.api.access.sessions import Sessions
from services.api.updates.messages import UpdateKind, parse_startup
from services.api.updates.settings import UpdatesSettings
from services.api.updates.subscriber import Subscriber
from services.api.updates.subscription import Subscription

OPEN: Final = gauge("resolute_api_updates_subscribers", "Subscribers to live updates that are connected")
READERS: Final = 4
"""Subscribers that read the database at the same time."""
GO_AWAY_S: Final = 2.0

log = structlog.get_logger()


class Updates:
    """Live updates, as this replica gives them."""

    def __init__(
        self,
        *,
        db: Database,
        sessions: Sessions,
        rights_of: Callable[[Principal], Awaitable[UserRights]],
        is_away: Callable[[BaseException], bool],
        settings: UpdatesSettings,
    ) -> None:
        self._db = db
        self._sessions = sessions
        self._rights_of = rights_of
        self._is_away = is_away
        self._settings = settings
        self._reading = asyncio.Semaphore(READERS)
        self._open: dict[Subscriber, asyncio.Task[None]] = {}

    def admit(
        self, *, head: bytes, take_over: TakeOver, credentials: Credentials, rights: UserRights, user_agent: str
    ) -> None:
        """Take the connection of a caller who may have it. Raises Unavailable, and ConnectionError when it is gone."""
        if len(self._open) >= self._settings.connections:
            raise Unavailable("there are too many subscribers to live updates, try again later")

        async def admit_again() -> UserRights:
            async with self._reading:
                return await self._rights_of(await self._sessions.authenticate(credentials))

        def subscribe(message: bytes) -> Subscription:
            return Subscription(
                db=self._db,
                startup=parse_startup(message),
                reading=self._reading,
                hides_deleted_versions=fails_when_versions_go(user_agent),
            )

        subscriber = Subscriber(
            socket_head=head,
            rights=rights,
            admit_again=admit_again,
            subscribe=subscribe,
            is_away=self._is_away,
            settings=self._settings,
        )
        take_over(subscriber.socket)
        task = asyncio.create_task(subscriber.run(), name="updates of a subscriber")
        self._open[subscriber] = task
        OPEN.inc()
        task.add_done_callback(lambda _: self._forget(subscriber))

    @asynccontextmanager
    async def listening(self, bus: Bus) -> AsyncIterator[None]:
        """Pass on what the bus says, while the block runs. Raises Unavailable when it takes no subscription."""

        async def project_changed(_: CoreMessage) -> None:
            self._tell(UpdateKind.PROJECTS, may_be_gone=True)

        async def workspace_changed(_: CoreMessage) -> None:
            self._tell(UpdateKind.PROJECTS, may_be_gone=False)

        async def rights_changed(_: CoreMessage) -> None:
            self._sessions.forget()  # it may not have heard yet
            for subscriber in self._open:
                subscriber.ask_again()

        heard = (
            (subjects.events_of("workspace", what="project"), project_changed),
            (subjects.events_of("workspace", what="changed"), workspace_changed),
            (subjects.events_of("model"), self._model_changed),
            (subjects.events_of("group"), rights_changed),
            (subjects.events_of("user"), rights_changed),
        )
        async with AsyncExitStack() as stack:
            for subject, callback in heard:
                await stack.enter_async_context(bus.subscribe(subject, callback, on_gap=self._look_for_all))
            yield

    async def drain(self) -> None:
        """Send all away; they come again elsewhere."""
        for subscriber in self._open:
            subscriber.go_away()
        if self._open:
            await asyncio.wait(self._open.values(), timeout=GO_AWAY_S)
        for subscriber, task in tuple(self._open.items()):
            subscriber.socket.cut()
            task.cancel()
        if self._open:
            await asyncio.wait(self._open.values(), timeout=GO_AWAY_S)

    async def _model_changed(self, message: CoreMessage) -> None:
        event = msgspec.json.decode(message.data, type=ModelChanged)
        may_be_gone = event.what in ("deleted", "moved")
        self._tell(UpdateKind.MODELS, may_be_gone=may_be_gone)
        if may_be_gone or event.version is not None:
            self._tell(UpdateKind.MODEL_VERSIONS, may_be_gone=may_be_gone or event.what == "version_deleted")

    def _look_for_all(self) -> None:
        for kind in UpdateKind:
            self._tell(kind, may_be_gone=True)

    def _tell(self, kind: UpdateKind, *, may_be_gone: bool) -> None:
        for subscriber in self._open:
            subscriber.hear(kind, may_be_gone=may_be_gone)

    def _forget(self, subscriber: Subscriber) -> None:
        del self._open[subscriber]
        OPEN.dec()


def fails_when_versions_go(user_agent: str) -> bool:
    """Whether it is the client of Determined 0.38: a deleted version ends it with a TypeError, and of the versions that
    it knows it sends the ids of models (docs/reference/platform.md 16)."""
    return user_agent.startswith("Lomond/")
