"""Spans with OpenTelemetry, without a collector; and that nothing is spent on them where they are not wanted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from libs.db.outbox import message
from libs.tracing import NO_SPAN, SpanKind, TraceContext, current, current_traceparent, record, span
from libs.tracing.export import OtlpTracer, traces_url
from libs.tracing.spans import use_tracer

PARENT = TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    use_tracer(OtlpTracer(service="api", processor=SimpleSpanProcessor(exporter), ratio=1.0))
    yield exporter
    use_tracer(None)


def test_without_a_tracer_a_span_is_nothing() -> None:
    with span("work", parent=PARENT) as begun:
        assert begun is NO_SPAN
        assert current() is None
    assert record("work", parent=PARENT, began_at=datetime.now(UTC), attributes={}) is None


def test_spans_inside_of_one_another_are_one_trace(exporter: InMemorySpanExporter) -> None:
    with span("outer", kind=SpanKind.SERVER, resolute__pool="default") as outer, span("inner"):
        assert current() is not None
    inner, outermost = exporter.get_finished_spans()
    assert (inner.name, outermost.name) == ("inner", "outer")
    assert inner.parent is not None
    assert inner.parent.span_id == outermost.context.span_id
    assert inner.context.trace_id == outermost.context.trace_id
    assert outer.context is not None
    assert f"{outermost.context.trace_id:032x}" == outer.context.trace_id
    assert outermost.attributes == {"resolute.pool": "default"}
    assert current() is None


def test_a_message_of_the_outbox_carries_the_span_that_wrote_it(exporter: InMemorySpanExporter) -> None:
    with span("request") as begun:
        assert begun.context is not None
        assert message("subject", b"")["headers"] == {"traceparent": begun.context.traceparent}
        assert current_traceparent() == begun.context.traceparent
    assert message("subject", b"")["headers"] == {}


def test_a_remote_parent_that_is_not_sampled_stays_so(exporter: InMemorySpanExporter) -> None:
    quiet = TraceContext(PARENT.trace_id, PARENT.span_id, is_sampled=False)
    with span("work", parent=quiet) as begun:
        assert begun.context is not None
        assert (begun.context.trace_id, begun.context.is_sampled) == (PARENT.trace_id, False)
    assert exporter.get_finished_spans() == ()


def test_what_fails_is_reported_as_failed_and_what_is_dropped_is_not(exporter: InMemorySpanExporter) -> None:
    with pytest.raises(ValueError, match="no"), span("work"):
        raise ValueError("no")
    with span("look") as look:
        look.drop()
    (failed,) = exporter.get_finished_spans()
    assert (failed.name, failed.status.is_ok, failed.status.description) == ("work", False, "ValueError: no")


def test_a_span_may_have_begun_before(exporter: InMemorySpanExporter) -> None:
    began_at = datetime(2026, 1, 2, tzinfo=UTC)
    context = record("queued", parent=PARENT, began_at=began_at, attributes={"a": 1})
    (queued,) = exporter.get_finished_spans()
    assert context is not None
    assert (queued.start_time or 0) / 10**9 == began_at.timestamp()
    assert queued.parent is not None
    assert f"{queued.parent.span_id:016x}" == PARENT.span_id


def test_a_collector_may_be_named_with_and_without_the_path() -> None:
    assert {traces_url(f"http://c:4318{end}") for end in ("", "/", "/v1/traces")} == {"http://c:4318/v1/traces"}


def test_services_that_trace_nothing_do_not_import_opentelemetry() -> None:
    """Its SDK takes some 15 MB of each process."""
    look = (
        "import sys, services.api.main, services.scheduler.acting, services.launcher.main, services.logs.main;"
        "print(sorted(name for name in sys.modules if name.startswith('opentelemetry.sdk')))"
    )
    found = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
