"""The collaborators that every handler may use, wired once at start."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from libs.bus import Bus
from libs.capacity import CapacityView
from libs.clock import Clock
from libs.cluster.config import ClusterConfig
from libs.db.engine import Database
from libs.ids import new_uuid
from libs.outbound.forward_proxy import ForwardProxy
from libs.slot_hours.decayed_use import UseOfPools
from libs.slot_hours.period_use import PeriodUse
from libs.tasks.proxy_tokens import SECRET_BYTES, ProxyTokens
from services.api.access.logins import Logins
from services.api.access.sessions import Sessions
from services.api.downloads.pieces import Downloads
from services.api.master_log import MasterLog
from services.api.metrics.rows.former_release import FormerRelease
from services.api.metrics.writer import MetricsWriter
from services.api.queries.charts.levels.making import LevelMaker
from services.api.queries.charts.time_series.kept_points import KeptPoints
from services.api.queries.project_parts import ProjectParts
from services.api.queries.trials.landmarks import Landmarks
from services.api.updates.updates import Updates
from services.api.waits.notifier import Notifier

if TYPE_CHECKING:
    from services.api.oidc.provider import OidcProvider


@dataclass(frozen=True, kw_only=True)
class App:
    db: Database
    bus: Bus
    clock: Clock
    cluster: ClusterConfig
    cluster_id: str
    """Of the installation; stays the same for the life of the database."""
    sessions: Sessions
    capacity: CapacityView
    notifier: Notifier
    metrics_writer: MetricsWriter
    master_log: MasterLog
    updates: Updates
    former_release: FormerRelease = field(default_factory=FormerRelease)
    project_parts: ProjectParts = field(default_factory=ProjectParts)
    """What was read of experiments that projects have in common, in this process."""
    period_use: PeriodUse = field(default_factory=PeriodUse)
    """What counts against limits of slot-hours, as it was read in this process."""
    past_use: UseOfPools = field(default_factory=UseOfPools)
    """What shares have used of pools that remember it, as it was read in this process."""
    level_maker: LevelMaker = field(default_factory=LevelMaker)
    """Of long series, for the requests of this process."""
    kept_points: KeptPoints = field(default_factory=KeptPoints)
    """Of long series that were shown, in this process."""
    landmarks: Landmarks = field(default_factory=Landmarks)
    """Of long trials that were read, in this process."""
    proxy_tokens: ProxyTokens = field(default_factory=lambda: ProxyTokens(secrets.token_bytes(SECRET_BYTES)))
    """Of the installation; by default of this process alone."""
    logins: Logins = field(default_factory=Logins)
    scim_logins: Logins = field(default_factory=Logins)
    """Of programs: their wrong passwords delay no login of a person."""
    oidc: OidcProvider | None = None
    """Where users can log in beside here."""
    downloads: Downloads = field(default_factory=Downloads)
    forward_proxy: ForwardProxy = field(default_factory=ForwardProxy)
    """Leads to storage that users name; one that does not listen yet leads nowhere."""
    checkpoint_roots: Mapping[str, str] = field(default_factory=dict)
    """Where this process sees directories of checkpoint storage: path in configurations -> path here."""
    release_namespace: str = ""
    """The namespace that this installation is in; part of the names of namespaces that it makes."""
    master_id: str = field(default_factory=new_uuid)
    """Of this process; new at every start."""
