"""The collaborators of handlers, for tests that run the api's own code in their process."""

from __future__ import annotations

from typing import Any

from libs.bus import Bus
from libs.capacity import CapacityView
from libs.clock import Clock
from libs.cluster.config import ClusterConfig
from libs.db.engine import Database
from services.api.access.sessions import Sessions
from services.api.app import App
from services.api.http.bound_route import basic_rights
from services.api.http.database_errors import is_away
from services.api.master_log import MasterLog
from services.api.metrics.writer import MetricsSettings, MetricsWriter, ToRows
from services.api.updates.settings import UpdatesSettings
from services.api.updates.updates import Updates
from services.api.waits.notifier import Notifier


def always() -> bool:
    """Of summaries that are put into rows: as where the release before is gone."""
    return True


def never() -> bool:
    return False


def new_app(
    db: Database,
    bus: Bus,
    clock: Clock,
    *,
    cluster: ClusterConfig | None = None,
    cluster_id: str = "test",
    metrics: MetricsSettings | None = None,
    to_rows: ToRows = always,
    narrow_user_tokens: bool = False,
    **others: Any,
) -> App:
    """An App that nothing listens for yet; ``others`` are further fields of it."""
    sessions = Sessions(db=db, clock=clock, narrow_user_tokens=narrow_user_tokens)
    return App(
        db=db,
        bus=bus,
        clock=clock,
        cluster=cluster or ClusterConfig(),
        cluster_id=cluster_id,
        sessions=sessions,
        capacity=CapacityView(),
        notifier=Notifier(),
        metrics_writer=MetricsWriter(db=db, settings=metrics, to_rows=to_rows),
        master_log=MasterLog(),
        updates=Updates(db=db, sessions=sessions, is_away=is_away, rights_of=basic_rights, settings=UpdatesSettings()),
        **others,
    )
