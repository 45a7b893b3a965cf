"""The installation as a whole: what every client asks first, the configuration, the log of its services."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from typing import Final

import structlog

from libs.cluster.oidc import OidcConfig
from libs.errors import InvalidRequest
from libs.telemetry import LogLevel as OwnLevel
from libs.telemetry import set_log_level
from libs.webhooks.deliveries import load_signing_key
from services.api.actions.cluster.cluster_message import read_message
from services.api.app import App
from services.api.http.call import Call
from services.api.http.replies.streams import StreamResult
from services.api.http.routing import Route
from services.api.master_log import MasterLog, MasterLogLine
from services.api.queries.cluster.master import shown_config
from services.api.versions import REFERENCE_VERSION, own_version
from services.api.wire.base import Empty, timestamp
from services.api.wire.cluster.master import (
    ConfigResponse,
    Info,
    LogEntry,
    MasterLogsQuery,
    MasterLogsResponse,
    MasterResponse,
    PatchConfigRequest,
    TelemetryResponse,
)
from services.api.wire.log_level import LogLevel
from services.api.wire.users.sso import MasterSsoProvider, SsoProvider

LOG_BATCH: Final = 500

log = structlog.get_logger(__name__)

_LEVELS: Final[dict[LogLevel, OwnLevel]] = {
    LogLevel.TRACE: "debug",
    LogLevel.DEBUG: "debug",
    LogLevel.INFO: "info",
    LogLevel.WARNING: "warning",
    LogLevel.ERROR: "error",
    LogLevel.CRITICAL: "error",
}
_LEVEL_OF_LINE: Final = {level.value.removeprefix("LOG_LEVEL_"): level for level in LogLevel}


async def info(call: Call[App, None, None]) -> Info:
    return Info(
        version=REFERENCE_VERSION,
        resolute_version=own_version(),
        master_id=call.app.master_id,
        cluster_id=call.app.cluster_id,
        cluster_name=call.app.cluster.cluster_name,
        sso_providers=[
            SsoProvider(name=oidc.provider, sso_url=oidc.sso_url, always_redirect=oidc.always_redirect)
            for oidc in _providers(call)
        ]
        or None,
    )


def _providers(call: Call[App, None, None]) -> list[OidcConfig]:
    oidc = call.app.cluster.oidc
    return [oidc] if oidc.enabled else []


async def get_master(call: Call[App, None, None]) -> MasterResponse:
    return MasterResponse(
        version=REFERENCE_VERSION,
        resolute_version=own_version(),
        master_id=call.app.master_id,
        cluster_id=call.app.cluster_id,
        cluster_name=call.app.cluster.cluster_name,
        sso_providers=[
            MasterSsoProvider(name=oidc.provider, sso_url=oidc.sso_url, always_redirect=oidc.always_redirect)
            for oidc in _providers(call)
        ],
        feature_switches=list(call.app.cluster.feature_switches),
        cluster_message=await read_message(call.app.db, now=call.app.clock.now()),
        rbac_enabled=call.app.cluster.security.authz.shows_roles,
        strict_job_queue_control=call.app.cluster.security.authz.strict_job_queue_control,
    )


async def get_telemetry(_: Call[App, None, None]) -> TelemetryResponse:
    """Nothing is ever sent home."""
    return TelemetryResponse()


async def get_config(call: Call[App, None, None]) -> ConfigResponse:
    level = logging.getLevelName(logging.getLogger().level).lower()
    color = call.app.master_log.has_color
    config = shown_config(call.app.cluster, log_level=level, log_color=color)
    # Whoever receives from webhooks needs it, and has no other place to find it.
    async with call.app.db.read() as connection:
        config["webhooks"]["signing_key"] = await load_signing_key(connection, call.app.cluster.webhooks.signing_key)
    return ConfigResponse(config=config)


async def patch_config(call: Call[App, None, PatchConfigRequest]) -> Empty:
    """Set what is said of the log of this process, until it ends."""
    paths = set(call.body.field_mask.paths)
    if unknown := sorted(paths - {"log.level", "log.color"}):
        changeable = "only log.level and log.color can be changed while running"
        raise InvalidRequest(f"fieldMask: {changeable}, not {', '.join(unknown)[:200]}")
    if not paths:
        raise InvalidRequest("fieldMask: name what is to be changed: log.level, log.color")
    wanted = call.body.config.log
    if "log.level" in paths and (not isinstance(wanted.level, LogLevel) or wanted.level not in _LEVELS):
        raise InvalidRequest("config.log.level: a level is required, such as LOG_LEVEL_INFO")
    if "log.color" in paths:
        # What is false may be left out of a message of this kind.
        call.app.master_log.has_color = wanted.color is True
        log.info("log.color_set", now=wanted.color is True, by=call.principal.username)
    if "log.level" in paths and isinstance(wanted.level, LogLevel):
        set_log_level(_LEVELS[wanted.level])
        log.info("log.level_set", now=_LEVELS[wanted.level], by=call.principal.username)
    return Empty()


async def master_logs(call: Call[App, MasterLogsQuery, None]) -> StreamResult:
    """The log of all services. ``offset`` is the id of the first line; a negative one counts from the end."""
    query = call.query
    if query.limit < 0:
        raise InvalidRequest("limit: must not be negative")
    if query.follow and query.limit:
        raise InvalidRequest("Limit cannot be specified when following")
    kept = call.app.master_log
    first = kept.start_of_last(-query.offset) if query.offset < 0 else query.offset
    if query.follow:
        return StreamResult(_followed(kept, first))
    return StreamResult(_present(kept, first, query.limit))


async def _present(kept: MasterLog, first: int, limit: int) -> AsyncIterator[Sequence[MasterLogsResponse]]:
    left = limit or None
    while batch := kept.since(first, at_most=LOG_BATCH if left is None else min(left, LOG_BATCH)):
        yield [_entry(line) for line in batch]
        first = batch[-1].id + 1
        if left is not None:
            left -= len(batch)


async def _followed(kept: MasterLog, first: int) -> AsyncIterator[Sequence[MasterLogsResponse]]:
    epoch = kept.epoch
    while True:
        async for batch in _present(kept, first, 0):
            yield batch
            first = batch[-1].log_entry.id + 1
        await kept.wait_for(first, epoch=epoch)
        if kept.epoch != epoch:
            epoch, first = kept.epoch, 0


def _entry(line: MasterLogLine) -> MasterLogsResponse:
    level = _LEVEL_OF_LINE.get(line.level, LogLevel.UNSPECIFIED)
    return MasterLogsResponse(
        log_entry=LogEntry(id=line.id, message=line.message, timestamp=timestamp(line.moment), level=level)
    )


ROUTES: Final = (
    Route(
        method="GET",
        path="/info",
        handler=info,
        raw=True,
        response=Info,
        summary="Get the version and the identity of the installation",
    ),
    Route(
        method="GET",
        path="/api/v1/master",
        handler=get_master,
        response=MasterResponse,
        summary="Get the version and the features of the installation",
    ),
    Route(
        method="GET",
        path="/api/v1/master/telemetry",
        handler=get_telemetry,
        response=TelemetryResponse,
        summary="Get whether telemetry is sent, which it never is",
    ),
    Route(
        method="GET",
        path="/api/v1/master/config",
        handler=get_config,
        response=ConfigResponse,
        summary="Get the configuration of the cluster",
    ),
    Route(
        method="PATCH",
        path="/api/v1/master/config",
        handler=patch_config,
        body=PatchConfigRequest,
        response=Empty,
        summary="Change the log level and colour of the api that answers",
    ),
    Route(
        method="GET",
        path="/api/v1/master/logs",
        handler=master_logs,
        query=MasterLogsQuery,
        response=MasterLogsResponse,
        stream=True,
        summary="Read the log of all services",
    ),
)
