"""Sessions are forgotten when nobody can have any use for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from services.scheduler.deletion.old_sessions import forget_sessions
from tests.harness import eventually
from tests.integration.scheduler.world import World

NOW = datetime(2030, 1, 10, tzinfo=UTC)
BEFORE = NOW - timedelta(days=1)
LONG_AGO, LATELY, LATER = NOW - timedelta(days=2), NOW - timedelta(hours=1), NOW + timedelta(days=1)

OF_USERS: list[tuple[str, str, datetime | None, datetime | None, bool]] = [
    ("a login that expired long ago", "LOGIN", LONG_AGO, None, False),
    ("a login that expired lately", "LOGIN", LATELY, None, True),
    ("a login that lasts", "LOGIN", LATER, None, True),
    ("that of a task that ended long ago", "TASK", None, LONG_AGO, False),
    ("that of a task that ended lately", "TASK", None, LATELY, True),
    ("that of a task that runs", "TASK", None, None, True),
    ("an access token that expired", "ACCESS", LONG_AGO, None, True),
    ("an access token that was revoked", "ACCESS", LATER, LONG_AGO, True),
]


async def test_sessions_that_ended_long_ago_are_forgotten(world: World) -> None:
    for number, (name, kind, expires, revoked, _) in enumerate(OF_USERS):
        await world.api.sql(
            "INSERT INTO user_sessions (user_id, token_hash, token_type, expires_at, revoked_at, description)"
            " VALUES (2, :hash, :kind, :expires, :revoked, :name)",
            hash=bytes([number]),
            kind=kind,
            expires=expires,
            revoked=revoked,
            name=name,
        )
    for number, revoked in enumerate((LONG_AGO, LATELY, None, LONG_AGO, LONG_AGO)):
        await _of_allocation(world, number, revoked)
    client = "INSERT INTO oauth_clients (id, name, domain, secret_hash) VALUES ('c', 'c', 'c.example', '')"
    await world.api.sql(client)
    for number, expires in enumerate((LONG_AGO, LATELY, LATER, None)):
        await world.api.sql(
            "INSERT INTO oauth_tokens (token_hash, client_id, kind, expires_at)"
            " VALUES (:hash, 'c', 'ACCESS', :expires)",
            hash=bytes([number]),
            expires=expires,
        )
    assert await forget_sessions(world.db, before=BEFORE) == 6
    assert await world.api.sql("SELECT expires_at FROM oauth_tokens ORDER BY token_hash") == [LATELY, LATER, None]
    kept = await world.api.sql("SELECT description FROM user_sessions ORDER BY token_hash")
    assert kept == [name for name, *_, stays in OF_USERS if stays]
    assert await world.api.sql("SELECT allocation_id FROM allocation_sessions ORDER BY 1") == ["1", "2"]
    assert await forget_sessions(world.db, before=BEFORE) == 0


async def test_the_scheduler_sees_to_it(world: World) -> None:
    await _of_allocation(world, 0, LONG_AGO - timedelta(days=3650))
    async with world.scheduling() as w:
        await eventually(lambda: _none_left(w))


async def _of_allocation(world: World, number: int, revoked: Any) -> None:
    await world.api.sql(
        "INSERT INTO allocation_sessions (allocation_id, owner_id, token_hash, revoked_at)"
        " VALUES (:id, 2, :hash, :revoked)",
        id=str(number),
        hash=bytes([number]),
        revoked=revoked,
    )


async def _none_left(w: World) -> bool:
    return await w.api.sql("SELECT count(*) FROM allocation_sessions") == [0]
