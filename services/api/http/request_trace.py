"""Traces requests: those that say which trace they belong to, and those of people that may change something.

What tasks report is not the beginning of a trace: they do so many times a second. Source: OpenTelemetry semantic
conventions for HTTP server spans, W3C Trace Context.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from libs.tracing import SpanKind, parse_traceparent, span
from services.api.access.credentials import ALLOCATION_TOKEN_HEADER
from services.api.http.exchange import Exchange

_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@contextmanager
def request_span(exchange: Exchange, method: str, route: str) -> Iterator[None]:
    """A span for answering the request, if it is to have one; for when traces are kept at all."""
    parent = parse_traceparent(exchange.headers.get("traceparent"))
    if parent is None and not _begins_a_trace(exchange, method):
        yield
        return
    with span(f"{method} {route}", parent=parent, kind=SpanKind.SERVER) as begun:
        begun.set("http.request.method", method)
        begun.set("http.route", route)
        begun.set("resolute.request_id", exchange.request_id)
        yield
        begun.set("http.response.status_code", exchange.status)
        if exchange.status >= 500:
            begun.fail(f"status {exchange.status}")


def _begins_a_trace(exchange: Exchange, method: str) -> bool:
    return method not in _READS and ALLOCATION_TOKEN_HEADER not in exchange.headers
