"""A new experiment is looked at once, whether its events or the request of the api come first."""

from __future__ import annotations

import msgspec
from sqlalchemy import text

from libs.events import subjects
from libs.events.reconcile_requests import ReconcileRequest
from tests.harness import eventually
from tests.integration.scheduler.world import World


async def test_request_about_a_creation_that_events_have_told_of_is_answered_without_a_look(world: World) -> None:
    async with world.scheduling():
        experiment = await world.api.create()

        async def is_told() -> bool:
            async with world.db.read() as connection:
                left = (await connection.execute(text("SELECT count(*) FROM outbox"))).scalar_one()
                assigned = await connection.execute(text("SELECT count(*) FROM allocations WHERE assigned_at NOTNULL"))
                return bool(left == 0 and assigned.scalar_one() == 1)

        await eventually(is_told)
        # Behind it nothing is left to do because of the events.
        await _ask(world, ReconcileRequest(experiments=(experiment,)))
        async with world.db.transaction() as connection:
            # Whoever looks now waits for the lock longer than a request is waited for.
            await connection.execute(text(f"SELECT FROM experiments WHERE id = {experiment} FOR UPDATE"))
            until = (await connection.execute(text("SELECT last_value FROM outbox_id_seq"))).scalar_one()
            await _ask(world, ReconcileRequest(experiments=(experiment,), created_until=until))


async def _ask(world: World, request: ReconcileRequest) -> None:
    """Returns when the scheduler has answered. Raises Unavailable when it has not done what it was asked."""
    await world.bus.request(subjects.RECONCILE, msgspec.json.encode(request), timeout_s=30)
