"""The wait of a peer until all of its allocation are there, and the data that each has brought
(docs/reference/harness-protocol.md 12.1)."""

from __future__ import annotations

import asyncio
from typing import Any

import structlog
from sqlalchemy.exc import SQLAlchemyError

from libs.clock import Clock
from libs.db.engine import Database
from libs.db.failures import DRIVER_ERRORS
from libs.db.transactions import in_transaction
from libs.errors import FailedPrecondition, ResoluteError
from libs.waiting import wait_until_set
from services.api.all_gather.group import answer_of
from services.api.all_gather.membership import Peer, join, leave, load_members, refresh
from services.api.waits.notifier import RECHECK_S, Notifier, allocation_topic

log = structlog.get_logger(__name__)


async def gather(db: Database, notifier: Notifier, clock: Clock, peer: Peer) -> list[Any]:
    """What all peers have brought, in the order in which they came; waits as long as it takes.

    Cancel it when the client goes away: the peer leaves then, unless the group was complete.
    Raises FailedPrecondition when another request takes the membership over or the allocation ends; and InvalidRequest,
    NotFound.
    """
    try:
        with notifier.watch(allocation_topic(peer.allocation_id)) as news:
            news.clear()
            gathered = await in_transaction(db, lambda connection: join(connection, peer, clock.now()))
            while gathered is None:
                await wait_until_set(news, timeout_s=RECHECK_S)
                news.clear()
                gathered = await _look(db, clock, peer)
            return gathered
    except asyncio.CancelledError:
        await _leave(db, peer)
        raise


async def _look(db: Database, clock: Clock, peer: Peer) -> list[Any] | None:
    async with db.read() as connection:
        answer = answer_of(await load_members(connection, peer.allocation_id), peer.request_uuid)
    if answer is not None:
        return answer
    members = await in_transaction(db, lambda connection: refresh(connection, peer, clock.now()))
    own = next((member for member in members if member.request_uuid == peer.request_uuid), None)
    if own is not None and own.holder != peer.holder:
        raise FailedPrecondition("another watcher with the same ID connected")
    if own is None:
        # Taken for abandoned, as after a long silence of the database.
        return await in_transaction(db, lambda connection: join(connection, peer, clock.now()))
    return None


async def _leave(db: Database, peer: Peer) -> None:
    try:
        await in_transaction(db, lambda connection: leave(connection, peer))
    except (ResoluteError, SQLAlchemyError, OSError, *DRIVER_ERRORS) as error:
        # Its membership goes stale by itself.
        log.warning("all_gather.leave_failed", allocation=peer.allocation_id, error=str(error))
