"""Opens what handlers use: the database with its schema and first rows, the bus, and the parts that live in memory."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from libs.bus import connect_bus
from libs.capacity import CapacityView
from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig
from libs.db.availability import retry_until_available
from libs.db.engine import connect_database
from libs.db.migrate import provide_schema
from libs.outbound.forward_proxy import open_forward_proxy
from libs.serving.readiness import Readiness
from libs.tasks.proxy_tokens import ProxyTokens
from services.api.access.rights.loading import rights_of
from services.api.access.sessions import Sessions
from services.api.actions.storage_addresses import remember_home
from services.api.app import App
from services.api.bootstrap import bootstrap, read_proxy_secret
from services.api.http.database_errors import is_away
from services.api.master_log import MasterLog
from services.api.metrics.rows.former_release import FormerRelease
from services.api.metrics.writer import MetricsWriter
from services.api.oidc.configured import oidc_provider
from services.api.settings import ApiSettings
from services.api.updates.updates import Updates
from services.api.waits.notifier import Notifier


@asynccontextmanager
async def open_app(settings: ApiSettings, cluster: ClusterConfig, readiness: Readiness) -> AsyncIterator[App]:
    """The collaborators of all handlers, connected for the duration of the block."""
    clock = SystemClock()
    async with connect_database(settings.database) as db:
        await provide_schema(settings.database)
        cluster_id = await retry_until_available(
            lambda: bootstrap(
                db, clock, cluster, password=settings.initial_user_password, cluster_id=settings.cluster_id
            ),
            timeout_s=settings.database.connect_timeout_s,
        )
        await retry_until_available(
            lambda: remember_home(db, cluster.checkpoint_storage), timeout_s=settings.database.connect_timeout_s
        )
        readiness.register("database", db.problem)
        readiness.register("database storage", db.storage_problem)
        async with connect_bus(settings.bus) as bus:
            readiness.register("bus", bus.problem)
            sessions = Sessions(db=db, clock=clock, narrow_user_tokens=cluster.security.token.in_tasks == "task")
            updates = Updates(
                db=db,
                sessions=sessions,
                is_away=is_away,
                rights_of=partial(rights_of, db, cluster.security.authz),
                settings=settings.updates,
            )
            former = FormerRelease()
            proxy_tokens = ProxyTokens(await read_proxy_secret(db))
            async with (
                oidc_provider(cluster.oidc, clock, os.environ) as oidc,
                open_forward_proxy() as forward_proxy,
            ):
                yield App(
                    db=db,
                    bus=bus,
                    clock=clock,
                    cluster=cluster,
                    cluster_id=cluster_id,
                    sessions=sessions,
                    capacity=CapacityView(),
                    notifier=Notifier(),
                    metrics_writer=MetricsWriter(db=db, settings=settings.metrics, to_rows=former.is_gone),
                    former_release=former,
                    master_log=MasterLog(),
                    updates=updates,
                    proxy_tokens=proxy_tokens,
                    release_namespace=settings.release_namespace,
                    forward_proxy=forward_proxy,
                    checkpoint_roots=settings.checkpoint_roots,
                    oidc=oidc,
                )
