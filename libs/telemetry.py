"""Logs, metrics and traces, set up the same way in every service.

Log with ``structlog.get_logger()``: a fixed event name, facts as fields (``log.info("gang.waiting", slots=16)``).
Metrics belong to one registry of the process; each module makes the ones it counts where it counts them.
"""

from __future__ import annotations

import logging
import sys
from typing import Annotated, Final, Literal, TextIO

import structlog
from msgspec import Meta, Struct
from structlog.typing import Processor

from libs.errors import ResoluteError
from libs.imports.partial import import_partly
from libs.service_log.line_handler import LineHandler
from libs.tracing.context import add_trace_ids
from libs.tracing.spans import use_tracer

# Its servers bring HTTP, mail and TLS along; ``libs/serving/status.py`` imports what shows metrics.
import_partly("prometheus_client", {"registry": ("CollectorRegistry",), "metrics": ("Counter", "Gauge", "Histogram")})

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram  # noqa: E402

REGISTRY: Final = CollectorRegistry()

LogLevel = Literal["debug", "info", "warning", "error"]


class TelemetrySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    log_format: Literal["json", "console"] = "json"
    """One JSON object per line, or text for people."""
    log_level: LogLevel = "info"
    """What is less than this is not logged."""
    status_port: Annotated[int, Meta(ge=0, le=65535)] | None = None
    """Port of ``/healthz``, ``/readyz`` and ``/metrics``; 0 picks a free one, None offers none of them."""
    status_host: str = "0.0.0.0"  # noqa: S104  # probes and scrapers come from outside
    """Address of that port; ``::`` is every address where there is IPv6."""
    traces_endpoint: str | None = None
    """OTLP/HTTP address of an OpenTelemetry collector, as in ``http://collector:4318``; None traces nothing."""
    traces_ratio: Annotated[float, Meta(ge=0, le=1)] = 1.0
    """Part of the calls of people that is traced, with everything that follows from them."""


def configure_logging(settings: TelemetrySettings, *, service: str, stream: TextIO | None = None) -> None:
    """Write one line per event to ``stream`` (standard error when None), including what libraries log.

    Every line has ``event``, ``level``, ``timestamp`` (UTC, RFC 3339) and ``service``; exceptions carry their stack.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        add_trace_ids,
    ]
    rendered: list[Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if settings.log_format == "json"
        # Stacks without local variables: those may hold tokens.
        else [structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)]
    )
    structlog.configure(
        processors=[
            *shared,
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )

    def add_service(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        event.setdefault("service", service)
        return event

    handler = LineHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, add_service, *rendered],
        )
    )
    logging.getLogger().handlers[:] = [handler]
    set_log_level(settings.log_level)


def set_log_level(level: LogLevel) -> None:
    """Log events of this level and above from here on, in this process."""
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(number))
    logging.getLogger().setLevel(number)


def configure_tracing(settings: TelemetrySettings, *, service: str) -> None:
    """Report spans of this process from here on, if that is wanted. Raises ResoluteError without OpenTelemetry."""
    if settings.traces_endpoint is None:
        return
    try:
        # Imported here: who traces nothing does without the memory of it.
        from libs.tracing.export import otlp_tracer  # noqa: PLC0415
    except ImportError as error:
        raise ResoluteError(
            f"telemetry.traces_endpoint is set, but {error.name} is not installed: install resolute[tracing]"
        ) from error
    use_tracer(otlp_tracer(service=service, endpoint=settings.traces_endpoint, ratio=settings.traces_ratio))


def end_tracing() -> None:
    """Report the last spans, and no more."""
    use_tracer(None)


class MetricDefinition(Struct, frozen=True):
    """What a module counts."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    documentation: str
    labels: tuple[str, ...]


_defined: Final[list[MetricDefinition]] = []


def defined_metrics() -> tuple[MetricDefinition, ...]:
    """Every metric of the modules imported so far, by name."""
    return tuple(sorted(_defined, key=lambda metric: metric.name))


def counter(name: str, documentation: str, *labels: str) -> Counter:
    """A counter of this process; ``name`` ends in ``_total``."""
    _defined.append(MetricDefinition(name, "counter", documentation, labels))
    return Counter(name, documentation, labels, registry=REGISTRY)


def gauge(name: str, documentation: str, *labels: str) -> Gauge:
    _defined.append(MetricDefinition(name, "gauge", documentation, labels))
    return Gauge(name, documentation, labels, registry=REGISTRY)


class Level:
    """A gauge that is counted up and down by one thread: each step costs a tenth of one of ``gauge``."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


def level(name: str, documentation: str) -> Level:
    """A gauge without labels for what begins and ends all the time."""
    counted = Level()
    gauge(name, documentation).set_function(lambda: counted.value)
    return counted


def histogram(name: str, documentation: str, *labels: str, buckets: tuple[float, ...] | None = None) -> Histogram:
    """A histogram of this process; ``name`` ends in its unit, ``buckets`` are upper bounds in that unit."""
    _defined.append(MetricDefinition(name, "histogram", documentation, labels))
    if buckets is None:
        return Histogram(name, documentation, labels, registry=REGISTRY)
    return Histogram(name, documentation, labels, registry=REGISTRY, buckets=buckets)


def value(name: str, **labels: str) -> float:
    """Present value of a sample as it appears in ``/metrics``; 0.0 for one that nothing has counted yet."""
    return REGISTRY.get_sample_value(name, labels) or 0.0
