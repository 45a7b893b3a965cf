"""Settings of the api."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from libs.bus.settings import BusSettings
from libs.db.connecting.settings import DatabaseSettings
from libs.serving.limits import HttpLimits
from libs.telemetry import TelemetrySettings
from services.api.http.decoding.upload_memory import BODY_FACTOR
from services.api.http.routing import MAX_BODY_BYTES, MIB
from services.api.metrics.writer import MetricsSettings
from services.api.proxy.settings import ProxySettings
from services.api.updates.settings import UpdatesSettings


class HttpSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    host: str = "0.0.0.0"  # noqa: S104  # a gateway is there to be reached
    """Address to listen on."""
    port: Annotated[int, Meta(ge=0, le=65535)] | None = None
    """Port to listen on; 0 picks a free one. None is 8080, or 8443 with ``security.tls`` of the cluster configuration.
    """
    descriptor: Annotated[int, Meta(ge=0)] | None = None
    """File descriptor of a listening socket that whoever starts the service hands over, in place of host and port, and
    keeps open: clients that come while the service is started anew wait instead of being refused."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies in front, which are believed when they say who sent a request and to which
    address: ``X-Forwarded-For``, ``-Proto``, ``-Host``, ``-Port``. What anybody else says of it counts for nothing.
    ``*`` believes everybody."""
    enable_cors: bool = False
    """Allow browsers of any origin, with credentials."""
    keep_alive_s: Annotated[int, Meta(gt=0)] = 75
    """How long an idle connection stays open; longer than any proxy in front keeps it."""
    stream_keep_alive_s: Annotated[float, Meta(gt=0)] = 20.0
    """How long a followed log or a chart is silent before the api sends bytes that no reader sees; shorter than proxies
    in between let a response be silent."""
    recheck_interval_s: Annotated[float, Meta(gt=0, le=60)] = 45.0
    """How often whoever follows a log or a chart is asked again whether they still may."""
    shutdown_grace_s: Annotated[int, Meta(ge=0)] = 5
    """How long requests may go on when the service ends; long polls are cut then, and clients repeat them."""
    limits: HttpLimits = HttpLimits()
    """What a request may be, and how slow, before anybody knows whose it is."""
    upload_memory_bytes: Annotated[int, Meta(ge=BODY_FACTOR * MAX_BODY_BYTES)] = 1536 * MIB
    """What all large bodies together may occupy while they are worked on; 503 beyond it, and clients come again."""


class ApiSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    http: HttpSettings = HttpSettings()
    proxy: ProxySettings = ProxySettings()
    updates: UpdatesSettings = UpdatesSettings()
    database: DatabaseSettings = DatabaseSettings(pool_size=20)
    bus: BusSettings = BusSettings(name="api")
    telemetry: TelemetrySettings = TelemetrySettings()
    metrics: MetricsSettings = MetricsSettings()
    cluster_config: str | None = None
    """Path of the cluster configuration file; without it there is one pool, named default."""
    initial_user_password: str | None = None
    """In place of ``security.initial_user_password`` of the cluster configuration, which other services read too."""
    cluster_id: str | None = None
    """The id that a new installation gets, for whoever has to tell its launchers before it exists. The api does not
    start on the database of an installation with another one. None takes the id that the database has."""
    release_namespace: str = ""
    """The namespace of the cluster that the installation is in; part of the names of namespaces made for workspaces."""
    checkpoint_roots: dict[str, str] = {}
    """Where the api sees shared directories of checkpoint storage, for downloads: host path -> path here."""
