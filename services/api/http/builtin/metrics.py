"""How the HTTP side is doing, for Prometheus: durations by route template, failures that should not exist."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from services.api.access.callers import ANYBODY
from services.api.http.call import Call
from services.api.http.replies.reply import RawResponse
from services.api.http.routing import Route

# Long polls last a minute, so the buckets reach beyond it.
_BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 90.0)


class HttpMetrics:
    """The metrics of one application, registered with ``registry``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._durations = Histogram(
            "resolute_api_request_duration_seconds",
            "Time from the first byte of a request to the last of its reply.",
            ["method", "route", "status"],
            registry=registry,
            buckets=_BUCKETS_S,
        )
        self._unexpected = Counter(
            "resolute_api_unexpected_errors_total",
            "Requests that ended in an exception nobody foresaw (500).",
            ["method", "route"],
            registry=registry,
        )
        in_progress = Gauge("resolute_api_requests_in_progress", "Requests being served.", registry=registry)
        in_progress.set_function(lambda: self._in_progress)
        self._in_progress = 0
        self._children: dict[tuple[str, str, int], Histogram] = {}

    def started(self) -> None:
        """A request begins."""
        self._in_progress += 1

    def finished(self, method: str, route: str, status: int, duration_s: float) -> None:
        """A request is over; ``status`` 499 means that the client did not wait for the answer."""
        self._in_progress -= 1
        key = (method, route, status)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self._durations.labels(method, route, str(status))
        child.observe(duration_s)

    def unexpected(self, method: str, route: str) -> None:
        """A request met an exception nobody foresaw."""
        self._unexpected.labels(method, route).inc()

    def route(self) -> Route:
        """``GET /metrics``, for anybody who can reach the port."""

        async def scrape(_: Call[object, None, None]) -> RawResponse:
            return RawResponse(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)

        return Route(method="GET", path="/metrics", handler=scrape, access=ANYBODY, raw=True)
