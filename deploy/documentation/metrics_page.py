"""Writes the reference page of the metrics that the services show to Prometheus."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from deploy.documentation.tables import GENERATED, row, table
from libs.telemetry import MetricDefinition, defined_metrics

_PRODUCT: Final = (
    "services.api.main",
    "services.scheduler.main",
    "services.scheduler.acting",
    "services.launcher.main",
    "services.launcher.backends.kubernetes.wiring.opening",
    "services.logs.main",
)
"""Modules that together import whatever runs."""
SECTIONS: Final = {
    "resolute_api_": "api",
    "resolute_scheduler_": "scheduler",
    "resolute_launcher_": "launcher",
    "resolute_logs_": "logs",
    "resolute_": "Several services",
}
"""How names begin -> who shows them."""
_TESTS: Final = "resolute_test_"


def product_metrics() -> tuple[MetricDefinition, ...]:
    """The metrics of all services."""
    for module in _PRODUCT:
        import_module(module)
    return tuple(metric for metric in defined_metrics() if not metric.name.startswith(_TESTS))


def metrics_page() -> str:
    """Every metric, with its labels."""
    lines = [
        "# Metrics: every one",
        "",
        GENERATED,
        "",
        "Each service shows its metrics on `/metrics` of its [status port](administrators.md#services-and-settings).",
        "[Alerts and dashboards](administrators.md#alerts-and-dashboards) are made of them.",
    ]
    left = list(product_metrics())
    for prefix, section in SECTIONS.items():
        own = [metric for metric in left if metric.name.startswith(prefix)]
        left = [metric for metric in left if metric not in own]
        lines += ["", f"## {section}", "", *table(("Metric", "Kind", "Labels", "Meaning"), map(_row, own))]
    return "\n".join([*lines, ""])


def _row(metric: MetricDefinition) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return row(f"`{metric.name}`", metric.kind, labels, metric.documentation)
