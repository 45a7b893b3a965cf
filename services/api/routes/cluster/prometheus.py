"""What a Prometheus of the cluster asks for: which container belongs to which experiment, and which agents to scrape.

Dashboards join these with the metrics of DCGM and cAdvisor. What the services count is at their own ``/metrics``.
Source: docs/reference/platform.md 14; https://prometheus.io/docs/prometheus/latest/http_sd/.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from libs.imports.one_by_one import IMPORTING
from services.api.app import App
from services.api.http.call import Call
from services.api.http.replies.reply import RawResponse
from services.api.http.routing import Route
from services.api.queries.cluster.agents import listed
from services.api.queries.cluster.running_state import RunningState, running_state
from services.api.queries.cluster.scrape_targets import scrape_targets

_TEXT_FORMAT: Final = "text/plain; version=0.0.4; charset=utf-8"


async def get_state_metrics(call: Call[App, None, None]) -> RawResponse:
    async with call.app.db.read() as connection:
        state = await running_state(connection, rights=call.rights)
    return RawResponse(await asyncio.to_thread(_text, state), media_type=_TEXT_FORMAT)


async def get_scrape_targets(call: Call[App, None, None]) -> RawResponse:
    targets = scrape_targets(listed(call.app.capacity.all()))
    return RawResponse(msgspec.json.encode(targets), media_type="application/json")


class _Gauges(Collector):
    """A gauge for each relation, and in it a sample of value 1 for each of its tuples."""

    def __init__(self, state: RunningState) -> None:
        self._state = state

    def collect(self) -> Iterator[GaugeMetricFamily]:
        state = self._state
        yield _gauge(
            "det_container_id_allocation_id",
            "The allocation of a container",
            ("container_id", "allocation_id"),
            state.containers_and_allocations,
        )
        yield _gauge(
            "det_allocation_id_task_id_task_actor",
            "Task, name and job of an allocation",
            ("allocation_id", "task_id", "task_actor", "job_id"),
            state.allocations_tasks_names_and_jobs,
        )
        yield _gauge(
            "det_container_id_runtime_container_id",
            "The container of an id of the container runtime",
            ("container_runtime_id", "container_id"),
            state.runtime_ids_and_containers,
        )
        yield _gauge(
            "det_job_id_experiment_id",
            "The experiment of a job",
            ("job_id", "experiment_id"),
            state.jobs_and_experiments,
        )
        yield _gauge(
            "det_experiment_id_label",
            "A label of an experiment",
            ("experiment_id", "label"),
            state.experiments_and_labels,
        )
        yield _gauge(
            "det_gpu_uuid_container_id",
            "The container that a GPU is given to",
            ("gpu_uuid", "container_id"),
            state.gpus_and_containers,
        )


def _text(state: RunningState) -> bytes:
    # Imported here, in a thread: a server of its own and mail come with it.
    with IMPORTING:
        from prometheus_client.exposition import generate_latest  # noqa: PLC0415

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Gauges(state))
    return generate_latest(registry)


def _gauge(name: str, help_: str, labels: tuple[str, ...], tuples: Iterable[tuple[str, ...]]) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(name, help_, labels=labels)
    for values in sorted(tuples):
        gauge.add_metric(values, 1)
    return gauge


ROUTES: Final = (
    Route(
        method="GET",
        path="/prom/det-state-metrics",
        handler=get_state_metrics,
        raw=True,
        summary="Get which container belongs to which allocation, task, experiment and label, as gauges for Prometheus",
    ),
    Route(
        method="GET",
        path="/prom/det-http-sd-config",
        handler=get_scrape_targets,
        raw=True,
        summary="List the agents to scrape, as HTTP service discovery of Prometheus",
    ),
)
