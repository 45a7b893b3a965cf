"""Settings of a launcher; ``libs/settings.py`` says where they come from."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from libs.bus import BusSettings
from libs.telemetry import TelemetrySettings
from services.launcher.backends.kubernetes.settings import KubernetesSettings
from services.launcher.backends.process.settings import ProcessSettings
from services.launcher.container.settings import TaskSettings


class LoopSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    absence_grace_s: Annotated[float, Meta(ge=0)] = 30.0
    """How long an order may be missing without having been withdrawn, before what runs without it is ended. A bus that
    lost its disk has no orders until the scheduler has written them again."""
    retry_s: Annotated[float, Meta(gt=0)] = 1.0
    """Pause before a step or a report that failed is tried again."""
    capacity_interval_s: Annotated[float, Meta(gt=0)] = 30.0
    """Longest time between two reports of the capacity; changes are reported at once. ``/health`` of the api takes
    100 s without a report as a sign that nobody is there."""


class LauncherSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pool: str = "default"
    """The resource pool whose orders this launcher carries out."""
    backend: Literal["process", "kubernetes"] = "process"
    """Whether tasks are processes of this machine or pods."""
    bus: BusSettings = field(default_factory=BusSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    tasks: TaskSettings = field(default_factory=TaskSettings)
    process: ProcessSettings = field(default_factory=ProcessSettings)
    kubernetes: KubernetesSettings = field(default_factory=KubernetesSettings)
    cluster_config: str | None = None
    """Path of the cluster configuration file, in which the kubernetes backend finds its pool."""
    loop: LoopSettings = field(default_factory=LoopSettings)
