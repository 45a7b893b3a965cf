"""REST shapes of the installation as a whole: its version, its configuration, its log
(docs/reference/platform.md 12)."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from services.api.wire.base import Message, Timestamp
from services.api.wire.cluster.cluster_message import ClusterMessage
from services.api.wire.log_level import LogLevel
from services.api.wire.users.sso import MasterSsoProvider, SsoProvider


class InfoTelemetry(Struct, frozen=True):
    enabled: bool = False
    otel_enabled: bool = False
    otel_endpoint: str = ""


class Info(Struct, frozen=True, kw_only=True):
    """``GET /info``; keys are snake_case on the wire. Clients look for ``sso_providers`` even when there are none."""

    version: str
    resolute_version: str
    master_id: str
    cluster_id: str
    cluster_name: str
    telemetry: InfoTelemetry = InfoTelemetry()
    sso_providers: list[SsoProvider] | None = None


class MasterResponse(Message, kw_only=True):
    version: str
    resolute_version: str
    """Not in the reference."""
    master_id: str
    cluster_id: str
    cluster_name: str
    telemetry_enabled: bool = False
    sso_providers: list[MasterSsoProvider] = []
    external_login_uri: str = ""
    external_logout_uri: str = ""
    branding: str = "determined"
    rbac_enabled: bool = False
    product: str = "PRODUCT_UNSPECIFIED"
    feature_switches: list[str] = []
    user_management_enabled: bool = True
    strict_job_queue_control: bool = False
    has_custom_logo: bool = False
    cluster_message: ClusterMessage | None = None
    """Only while it is to be shown."""


class TelemetryResponse(Message):
    enabled: bool = False
    segment_key: str = ""


class ConfigResponse(Message):
    config: dict[str, Any] | None = None


class LogConfig(Message):
    level: LogLevel | UnsetType = UNSET
    color: bool | UnsetType = UNSET


class MasterConfig(Message):
    log: LogConfig = field(default_factory=LogConfig)


class FieldMask(Message):
    paths: list[str] = []


class PatchConfigRequest(Message):
    config: MasterConfig = field(default_factory=MasterConfig)
    field_mask: FieldMask = field(default_factory=FieldMask)


class MasterLogsQuery(Message):
    offset: int = 0
    limit: int = 0
    follow: bool = False


class LogEntry(Message, kw_only=True):
    id: int
    message: str
    timestamp: Timestamp | None
    level: LogLevel


class MasterLogsResponse(Message, kw_only=True):
    """One line of the stream."""

    log_entry: LogEntry
