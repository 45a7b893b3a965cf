"""Traces: what follows one piece of work through the services, as OpenTelemetry tells it.

Off unless ``telemetry.traces_endpoint`` is set; then nothing of OpenTelemetry is imported, and a span is nothing.
"""

from libs.tracing.context import TraceContext, current, current_traceparent, parse_traceparent
from libs.tracing.spans import NO_SPAN, Span, SpanKind, is_tracing, record, span

__all__ = [
    "NO_SPAN",
    "Span",
    "SpanKind",
    "TraceContext",
    "current",
    "current_traceparent",
    "is_tracing",
    "parse_traceparent",
    "record",
    "span",
]
