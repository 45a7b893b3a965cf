"""Sets and removes weights of the shares of users, groups and workspaces. Plans go by them from the next one on."""

from __future__ import annotations

import math
from datetime import datetime

from sqlalchemy import delete
from sqlalchemy.dialects.postgresql import insert

from libs.db.engine import Database
from libs.db.tables.cluster import share_weights
from libs.errors import InvalidRequest, NotFound
from services.api.actions.cluster.holders import holder_id, required_scope
from services.api.queries.cluster.shares import find_share
from services.api.wire.cluster.shares import SetShareRequest, Share


async def set_share(db: Database, request: SetShareRequest, *, user_id: int, now: datetime) -> Share:
    """It takes the place of the weight that the holder had. Raises InvalidRequest, NotFound."""
    scope, weight = required_scope(request.scope), _weight(request.weight)
    if not request.name:
        raise InvalidRequest(f"name: a weight needs the name of the {scope}")
    async with db.transaction() as connection:
        key = {"scope": scope.value, "subject_id": await holder_id(connection, scope, request.name)}
        values = {"weight": weight, "set_by": user_id, "set_at": now}
        row = insert(share_weights).values(**key, **values)
        made = row.on_conflict_do_update(index_elements=list(key), set_=values).returning(share_weights.c.id)
        share = await find_share(connection, (await connection.execute(made)).scalar_one())
    if share is None:  # whom it is for has been deleted meanwhile
        raise NotFound(scope.value, request.name)
    return share


async def remove_share(db: Database, ident: int) -> None:
    """Raises NotFound."""
    async with db.transaction() as connection:
        gone = delete(share_weights).where(share_weights.c.id == ident).returning(share_weights.c.id)
        if (await connection.execute(gone)).scalar_one_or_none() is None:
            raise NotFound("share", ident)


def _weight(weight: float | None) -> float:
    """Raises InvalidRequest."""
    if weight is None or not (weight > 0 and math.isfinite(weight)):
        raise InvalidRequest("weight: a number greater than 0")
    return weight
