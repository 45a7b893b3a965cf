"""Settings of the scheduler."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from libs.bus import BusSettings
from libs.db.connecting.settings import DatabaseSettings
from libs.telemetry import TelemetrySettings


class QueueSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    plan_interval_s: Annotated[float, Meta(gt=0)] = 0.1
    """Shortest time between two plans of a pool. Lower reacts faster and reads the database more often."""
    resync_s: Annotated[float, Meta(gt=0)] = 10.0
    """Longest time between two plans of a pool, when nobody says that anything has changed."""


class ForecastSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    every_s: Annotated[float, Meta(gt=0)] = 30.0
    """How often the starts of what waits are estimated. That takes a twentieth of the time at most: where queues are
    long, it is done less often."""
    most: Annotated[int, Meta(ge=1)] = 1000
    """Requests at the head of a queue for which estimates are kept up to date."""
    default_run_s: Annotated[float, Meta(gt=0)] = 3600.0
    """How long a task is expected to run where nothing like it has run before, and its owner has declared nothing."""


class EngineSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    resync_s: Annotated[float, Meta(gt=0)] = 10.0
    """How often the database is searched for anything whose event was missed."""
    silence_s: Annotated[float, Meta(gt=0)] = 300.0
    """How long nothing may be heard of an allocation until its launcher is asked whether there is anything to say."""
    log_wait_s: Annotated[float, Meta(ge=0)] = 30.0
    """How long what comes of an attempt that has ended waits at most until its log is stored. 0 where nothing ships
    logs."""
    sessions_kept_s: Annotated[float, Meta(ge=0)] = 86400.0
    """How long sessions of logins and tasks are remembered after their end; longer than the log intake takes lines by
    them (its ``token_grace_s``)."""
    idle_grace_s: Annotated[float, Meta(ge=0)] = 60.0
    """How long after a start or an outage no notebook or TensorBoard is ended for being idle: whoever uses one has to
    have the time to say so again. Notebooks do every 30 seconds."""
    audit_kept_days: Annotated[int, Meta(ge=1, le=36500)] | None = 365
    """How long the audit log remembers who changed what; None is for ever."""
    observers: Annotated[int, Meta(ge=1)] = 8
    """Observations that are applied side by side."""


class LeaseSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    retry_s: Annotated[float, Meta(gt=0)] = 0.5
    """How often a standby tries to become the active scheduler."""
    check_s: Annotated[float, Meta(gt=0)] = 2.0
    """How often the active scheduler makes sure that it still is."""


class WebhookSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    look_s: Annotated[float, Meta(gt=0)] = 0.5
    """How often the database is searched for events that webhooks are to be told of."""
    timeout_s: Annotated[float, Meta(gt=0)] = 10.0
    """How long a receiver may take to answer."""
    connections: Annotated[int, Meta(ge=1)] = 8
    """Events that one receiver is told of side by side."""
    kept_s: Annotated[float, Meta(ge=0)] = 86400.0
    """How old an event may be for another attempt, after one that failed."""
    most_waiting: Annotated[int, Meta(ge=1)] = 100_000
    """Events that wait for one webhook at most; of more, the oldest are dropped."""


class SchedulerSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    database: DatabaseSettings = DatabaseSettings(pool_size=16)
    bus: BusSettings = BusSettings(name="resolute-scheduler")
    telemetry: TelemetrySettings = TelemetrySettings()
    cluster_config: str | None = None
    """Path of the cluster configuration file; without one there is a single process pool named ``default``."""
    queue: QueueSettings = QueueSettings()
    forecast: ForecastSettings = ForecastSettings()
    engine: EngineSettings = EngineSettings()
    lease: LeaseSettings = LeaseSettings()
    webhooks: WebhookSettings = WebhookSettings()
