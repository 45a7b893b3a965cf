"""Reports spans to a collector: the SDK of OpenTelemetry, over OTLP/HTTP. Imported only where traces are wanted.

The variables ``OTEL_EXPORTER_OTLP_HEADERS``, ``OTEL_EXPORTER_OTLP_CERTIFICATE`` and ``OTEL_RESOURCE_ATTRIBUTES`` of
OpenTelemetry hold as everywhere. A collector that is away costs its spans and nothing else.
Source: OpenTelemetry specification, OTLP 1.3 and the environment variables of the OTLP exporter.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import NonRecordingSpan, SpanContext, Status, StatusCode, TraceFlags

from libs.tracing.context import TraceContext
from libs.tracing.spans import AttributeValue, SpanKind

_TRACES_PATH: Final = "/v1/traces"
_ANSWER_S: Final = 3.0
"""How long the collector may take; a service that ends does not wait longer."""
_KINDS: Final = {
    SpanKind.INTERNAL: trace.SpanKind.INTERNAL,
    SpanKind.SERVER: trace.SpanKind.SERVER,
    SpanKind.PRODUCER: trace.SpanKind.PRODUCER,
    SpanKind.CONSUMER: trace.SpanKind.CONSUMER,
}


class OtlpTracer:
    """See ``libs.tracing.spans.Tracer``."""

    def __init__(self, *, service: str, processor: SpanProcessor, ratio: float) -> None:
        resource = Resource.create(
            {
                "service.namespace": "resolute",
                "service.name": f"resolute-{service}",
                "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
            }
        ).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(
            resource=resource, sampler=ParentBased(TraceIdRatioBased(ratio)), shutdown_on_exit=False
        )
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("resolute")

    def begin(
        self,
        name: str,
        *,
        parent: TraceContext | None,
        kind: SpanKind,
        attributes: Mapping[str, AttributeValue],
        began_at: datetime | None,
    ) -> OtlpSpan:
        return OtlpSpan(
            self._tracer.start_span(
                name,
                context=None if parent is None else trace.set_span_in_context(NonRecordingSpan(_as_known(parent))),
                kind=_KINDS[kind],
                attributes=attributes,
                start_time=None if began_at is None else int(began_at.timestamp() * 10**9),
            )
        )

    def close(self) -> None:
        self._provider.shutdown()


class OtlpSpan:
    """See ``libs.tracing.spans.Span``."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self._is_dropped = False
        known = span.get_span_context()
        self.context = TraceContext(
            trace.format_trace_id(known.trace_id), trace.format_span_id(known.span_id), known.trace_flags.sampled
        )

    def set(self, name: str, value: AttributeValue) -> None:
        self._span.set_attribute(name, value)

    def fail(self, description: str) -> None:
        self._span.set_status(Status(StatusCode.ERROR, description))

    def drop(self) -> None:
        self._is_dropped = True

    def end(self) -> None:
        if not self._is_dropped:  # only what has ended is reported
            self._span.end()


def otlp_tracer(*, service: str, endpoint: str, ratio: float) -> OtlpTracer:
    """Reports in batches, from a thread of its own."""
    exporter = OTLPSpanExporter(endpoint=traces_url(endpoint), timeout=_ANSWER_S)
    return OtlpTracer(service=service, processor=BatchSpanProcessor(exporter), ratio=ratio)


def traces_url(endpoint: str) -> str:
    """Where a collector at ``endpoint`` takes traces."""
    return endpoint if endpoint.endswith(_TRACES_PATH) else endpoint.rstrip("/") + _TRACES_PATH


def _as_known(context: TraceContext) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if context.is_sampled else TraceFlags.DEFAULT)
    return SpanContext(int(context.trace_id, 16), int(context.span_id, 16), is_remote=True, trace_flags=flags)
