"""Writes the reference pages: the configuration file, the services' settings, their metrics, who may do what."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct

from deploy.documentation.chart_values import chart_values
from deploy.documentation.dashboard_picture import dashboard_picture
from deploy.documentation.metrics_page import metrics_page
from deploy.documentation.openapi_names import openapi_names
from deploy.documentation.queue_pictures.pictures import policies_picture, reservation_picture
from deploy.documentation.rights_page import rights_page
from deploy.documentation.struct_fields import fields_of
from deploy.documentation.tables import GENERATED, row, table
from libs.cluster.config import ClusterConfig
from libs.events import asyncapi
from libs.settings import variable
from services.api.settings import ApiSettings
from services.launcher.settings import LauncherSettings
from services.logs.settings import LogsSettings
from services.scheduler.settings import SchedulerSettings

SERVICES: Final[dict[str, type[Struct]]] = {
    "api": ApiSettings,
    "scheduler": SchedulerSettings,
    "launcher": LauncherSettings,
    "logs": LogsSettings,
}


def configuration_page() -> str:
    """Every key of the cluster configuration file."""
    rows = [
        row(f"`{'.'.join(one.path)}`", one.kind, _code(one.default), one.description)
        for one in fields_of(ClusterConfig)
    ]
    return "\n".join(
        [
            "# Configuration file: every key",
            "",
            GENERATED,
            "",
            "The file that all services share (`cluster_config` of their settings). What to know before choosing is in",
            "[For administrators](administrators.md#the-cluster-configuration). A key without a default is required",
            "where the part above it is written. What a pool's `task_container_defaults` leaves out is that of the",
            "cluster.",
            "",
            *table(("Key", "Value", "Default", "Meaning"), rows),
            "",
        ]
    )


def settings_page() -> str:
    """Every setting of every service, and the environment variable that sets it."""
    lines = [
        "# Settings of the services: every key",
        "",
        GENERATED,
        "",
        "Each service reads its settings from the file given with `--settings`, and from the environment, which wins.",
    ]
    for service, settings in SERVICES.items():
        rows = [
            row(f"`{'.'.join(one.path)}`", f"`{variable(one.path)}`", one.kind, _code(one.default), one.description)
            for one in fields_of(settings)
        ]
        lines += [
            "",
            f"## {service}",
            "",
            *table(("Setting", "Environment variable", "Value", "Default", "Meaning"), rows),
        ]
    return "\n".join([*lines, ""])


def values_page() -> str:
    """Every value of the Helm chart."""
    rows = [row(f"`{one.path}`", one.kind, one.default, one.description) for one in chart_values()]
    return "\n".join(
        [
            "# Values of the Helm chart: every key",
            "",
            GENERATED,
            "",
            "How to install with them is in [Kubernetes](install-kubernetes.md). A name that is not known is an error,",
            "and `null` is the same as leaving a value out.",
            "",
            *table(("Value", "What it is", "Default", "Meaning"), rows),
            "",
        ]
    )


PAGES: Final = {
    "configuration.md": configuration_page,
    "settings.md": settings_page,
    "values.md": values_page,
    "metrics.md": metrics_page,
    "rights.md": rights_page,
    "asyncapi.yaml": asyncapi.render,
    "openapi-names.txt": openapi_names,
    "pictures/dashboard.svg": dashboard_picture,
    "pictures/policies.svg": policies_picture,
    "pictures/reservation.svg": reservation_picture,
}
"""File below ``docs/`` -> what makes its text."""


def write_pages(folder: Path) -> None:
    for name, page in PAGES.items():
        (folder / name).write_text(page())


def _code(value: str) -> str:
    return f"`{value}`" if value else "required"
