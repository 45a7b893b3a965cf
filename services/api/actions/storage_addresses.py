"""Storage that users name, as far as the api itself connects to it: at public addresses, unless an administrator allows
others.

Whoever names an endpoint makes the api call it when a checkpoint is downloaded (server-side request forgery). It is
refused when it is named, where its address is known then, and in any case when the api connects. Hosts that
administrators have named lead anywhere, as do those that were stored before there was such a rule.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.checkpoint_storage.endpoints import field_of, named_endpoint, of_administrators, refusal
from libs.cluster.config import ClusterConfig
from libs.db.engine import Database
from libs.db.tables.checkpoints import storage_hosts
from libs.db.tables.templates import config_policies
from libs.errors import InvalidRequest
from libs.outbound.destinations import Authority, Destinations, authority_of
from libs.outbound.forward_proxy import Passage
from libs.outbound.resolving import resolve
from services.api.app import App

_RESOLVED_WITHIN_S: Final = 2.0

Section = Mapping[str, Any]


async def check_storage_of_users(app: App, storage: Section | None, *, path: str = "checkpoint_storage") -> None:
    """Raise InvalidRequest for a storage at a private address; a host that nobody can resolve yet is let pass.

    storage  a section, or the part of one that a user gives
    path     where it stands, for the user
    """
    url = _of_user(app.cluster, storage or {})
    if storage is None or url is None:
        return
    field, to = field_of(storage), authority_of(url)
    if to is None:
        raise InvalidRequest(f"{path}.{field}: must lead to a URL such as http://minio.data.svc:9000")
    async with app.db.read() as connection:
        allowed = await _allowed(connection, app.cluster)
    try:
        async with asyncio.timeout(_RESOLVED_WITHIN_S):
            addresses = await resolve(to)
    except (OSError, TimeoutError):
        return
    if not any(allowed.allow(to, address) for address in addresses):
        raise InvalidRequest(refusal(field, to, path))


async def passage_to(connection: AsyncConnection, app: App, storage: Section) -> Passage | None:
    """The way to a storage that a user has named; None for one that the api connects to whatever its address is."""
    if _of_user(app.cluster, storage) is None:
        return None
    return app.forward_proxy.passage(await _allowed(connection, app.cluster))


async def remember_home(db: Database, home: Section | None) -> None:
    """Keep the hosts that the configuration names now: what is stored there is wanted when it names others."""
    rows = [{"host": host, "port": port} for host, port in sorted(of_administrators(home or {}))]
    if rows:
        async with db.transaction() as connection:
            await connection.execute(insert(storage_hosts).values(rows).on_conflict_do_nothing())


def _of_user(cluster: ClusterConfig, storage: Section) -> str | None:
    """The URL of a storage that has to be looked at."""
    url = named_endpoint(storage)
    if cluster.storage_destinations is None or url is None:
        return None
    return None if authority_of(url) in of_administrators(cluster.checkpoint_storage or {}) else url


async def _allowed(connection: AsyncConnection, cluster: ClusterConfig) -> Destinations:
    """What the configuration allows, with the hosts that are known from before and those of global config policies."""
    named = cluster.storage_destinations or Destinations()
    known = {Authority(host, port) for host, port in await connection.execute(select(storage_hosts))}
    section = config_policies.c.invariant_config["checkpoint_storage"]
    policies = await connection.execute(select(section).where(config_policies.c.workspace_id.is_(None)))
    fixed = {
        found
        for (storage,) in policies
        if isinstance(storage, dict) and (url := named_endpoint(storage)) and (found := authority_of(url)) is not None
    }
    return Destinations(networks=named.networks, hosts=named.hosts | known | fixed)
