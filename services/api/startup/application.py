"""The application of a running api: every route that is switched on, the proxy, and what is subscribed to first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from sqlalchemy import select
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from libs.cluster.web_root import problem_of_root
from libs.db.storage_probe import DISK_FULL
from libs.errors import InvalidRequest
from libs.events import subjects
from libs.serving.readiness import Readiness
from services.api.access.rights.loading import rights_of
from services.api.app import App
from services.api.http.application import Lifespan, build_application
from services.api.http.builtin.health import HealthReport, ResourceManagerHealth
from services.api.http.decoding.upload_memory import UploadMemory
from services.api.proxy.proxy import Proxy
from services.api.queries.cluster.manager_health import is_reporting
from services.api.routes import updates
from services.api.routes.table import routes_to_serve
from services.api.settings import HttpSettings
from services.api.web.built_page import BuiltPage

PAGE_PREFIX: Final = "/det"


def application_of(app: App, proxy: Proxy, settings: HttpSettings, readiness: Readiness) -> Starlette:
    """The ASGI application; its lifespan has to be entered before it is served."""
    cluster = app.cluster
    routes = [
        route for route in routes_to_serve() if route.path != updates.PATH or cluster.is_switched_on(updates.SWITCH)
    ]
    if cluster.web.root:  # it has pages of its own for logins and for waiting
        routes = [route for route in routes if not f"{route.path}/".startswith(f"{PAGE_PREFIX}/")]
    application = build_application(
        routes,
        app,
        app.sessions.authenticate,
        subscribed(app, proxy),
        health=lambda: health(app, readiness),
        enable_cors=settings.enable_cors,
        recheck_interval_s=settings.recheck_interval_s,
        silence_s=settings.stream_keep_alive_s,
        uploads=UploadMemory(settings.upload_memory_bytes),
        below={"/proxy/": proxy},
        only_below=lambda scope: proxy.hosts.is_of_tasks(scope["headers"]),
        rights_of=partial(rights_of, app.db, cluster.security.authz),
    )
    if cluster.web.root:
        serve_page(application, cluster.web.root)
    return application


def serve_page(application: Starlette, root: str) -> None:
    """Have it serve the built page of a folder below ``/det``. Raises InvalidRequest where it cannot be served."""
    if (problem := problem_of_root(root)) is not None:
        raise InvalidRequest(f"web.root: {problem}")
    built = BuiltPage(root)
    application.router.routes += [Route(PAGE_PREFIX, built), Mount(PAGE_PREFIX, built)]


def subscribed(app: App, proxy: Proxy) -> Lifespan:
    """The lifespan of the application: what requests rely on is subscribed to before the first of them comes."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with (
            app.sessions.listening(app.bus),
            app.notifier.listening(app.bus),
            proxy.listening(app.bus),
            app.updates.listening(app.bus),
            app.bus.serve(subjects.NOTES_USE, lambda _: note_use(app), queue="apis"),
        ):
            yield

    return lifespan


async def note_use(app: App) -> bytes:
    """Answers the scheduler, before it ends what seems to be idle, that use of it would be known."""
    async with app.db.read() as connection:
        await connection.execute(select(1))
    return b""


async def health(app: App, readiness: Readiness) -> HealthReport:
    """Down when the database or the bus is away or cannot store anything; without a launcher the api works."""
    found = await readiness.problems()
    reports = [report for pool in app.cluster.resource_pools if (report := app.capacity.of(pool.pool_name))]
    manager = ResourceManagerHealth(
        cluster_name=app.cluster.resource_manager.cluster_name,
        status="up" if is_reporting(reports, app.clock.now()) else "down",
    )
    return health_report(found, manager)


def health_report(found: Mapping[str, str | None], manager: ResourceManagerHealth) -> HealthReport:
    """What anybody may know of the problems that were found: addresses and names of files are for the log. Pure."""
    problems: dict[str, str] = {}
    if found["database"]:
        problems["database"] = "does not answer"
    elif problem := found.get("database storage"):
        problems["database"] = f"does not store: {DISK_FULL}" if DISK_FULL in problem else "does not store"
    if problem := found["bus"]:
        problems["bus"] = problem
    return HealthReport(
        status="down" if problems else "up",
        database="down" if "database" in problems else "up",
        bus="down" if "bus" in problems else "up",
        resource_managers=[manager],
        problems=problems,
    )
