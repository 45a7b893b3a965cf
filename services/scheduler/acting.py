"""The work of the active scheduler. Imported when the lease is won: whoever stands by does without its memory."""

from __future__ import annotations

from libs.bus import Bus
from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig
from libs.db.engine import connect_database
from services.scheduler.controller import SchedulerController
from services.scheduler.settings import SchedulerSettings


async def act(settings: SchedulerSettings, cluster: ClusterConfig, bus: Bus) -> None:
    """Schedule until cancelled.

    Everything is made anew each time: what one term of office has in memory is of no use to the next.
    """
    async with connect_database(settings.database) as db:
        await SchedulerController(db=db, bus=bus, clock=SystemClock(), cluster=cluster, settings=settings).run()
