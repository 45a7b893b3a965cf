"""Orders of placeholders that launchers should have, as the growth of pools says it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from sqlalchemy import text

from libs.cluster.config import PoolConfig
from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from libs.events.orders import PlaceholderOrder

_ORDERED: Final = PreparedStatement("""
    SELECT placeholders FROM pool_growths WHERE pool = ANY(:pools::text[]) AND rests_until IS NULL
""")
_KEEP: Final = text("LOCK TABLE pool_growths IN SHARE MODE")


async def keep_placeholders(connection: Connection) -> None:
    """Until the end of the transaction nobody orders placeholders, and what was ordered is seen."""
    await connection.execute(_KEEP)


async def ordered_placeholders(connection: Connection, pools: Iterable[PoolConfig]) -> list[PlaceholderOrder]:
    """Those of ``pools``, which grow; at most one of each."""
    names = [pool.pool_name for pool in pools]
    rows = await _ORDERED.rows(connection, pools=names) if names else ()
    return [msgspec.convert(row["placeholders"], PlaceholderOrder) for row in rows]
