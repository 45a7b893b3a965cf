"""Reactions to the status of allocations: each allocation by itself, repeated until it is done or not needed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import structlog

from libs.errors import Unavailable
from services.launcher.backends.kubernetes.allocations.state.allocation import TrackedAllocation
from services.launcher.backends.kubernetes.allocations.state.status import NextAction
from services.launcher.backends.kubernetes.allocations.teardown import Teardown
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.background import Background
from services.launcher.backends.kubernetes.client.api import Refused

log = structlog.get_logger()

RETRY_S: Final = 2.0


class Reactions:
    def __init__(self, teardown: Teardown, tracker: Tracker, background: Background) -> None:
        self._tracker = tracker
        self._background = background
        self._busy: set[str] = set()
        self._acts: Mapping[NextAction, Callable[[TrackedAllocation], Awaitable[None]]] = {
            NextAction.END_REST: teardown.end_rest,
            NextAction.DELETE_PODS: teardown.delete_pods,
            NextAction.LIST_PODS: teardown.list_pods,
            NextAction.STOP: teardown.send_stop,
        }

    async def run(self) -> None:
        """React to every change that calls for it, until cancelled."""
        while True:
            tracked = await self._tracker.next_due()
            what = tracked.status.reaction
            if what is not None and tracked.allocation not in self._busy:
                self._busy.add(tracked.allocation)
                self._background.create_task(self._do(tracked, what), name=f"{what.value} {tracked.allocation}")

    async def _do(self, tracked: TrackedAllocation, what: NextAction) -> None:
        try:
            await self._until_done(tracked, what)
        finally:
            self._busy.discard(tracked.allocation)
        if self._tracker.allocations.get(tracked.allocation) is tracked:
            self._tracker.look(tracked)

    async def _until_done(self, tracked: TrackedAllocation, what: NextAction) -> None:
        while tracked.refresh(self._tracker.view()).reaction is what:
            try:
                await self._acts[what](tracked)
            except (Refused, Unavailable) as error:
                log.warning(
                    "kubernetes.reaction_retried", what=what.value, allocation=tracked.allocation, error=str(error)
                )
            except Exception:
                # A bug of ours with this allocation must not end all others.
                log.exception("kubernetes.reaction_failed", what=what.value, allocation=tracked.allocation)
            else:
                return
            await asyncio.sleep(RETRY_S)
