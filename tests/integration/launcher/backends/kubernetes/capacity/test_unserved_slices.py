"""Servers that have the group of Dynamic Resource Allocation without slices, or not at all; needs no cluster."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from libs.clock import SystemClock
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.background import Background
from services.launcher.backends.kubernetes.client.api import KubeApi, Refused
from services.launcher.backends.kubernetes.namespaces.informers import ClusterInformers
from tests.integration.launcher.backends.kubernetes.client.faulty import Json, serving
from tests.unit.launcher.backends.kubernetes.builders import Listener, capacity_tracker_of

GROUP = "/apis/resource.k8s.io"
SLICE = {"metadata": {"name": "s", "resourceVersion": "1"}, "spec": {"nodeName": "n1"}}


async def claims_only_of(answers: dict[str, Json], *, refused: dict[str, int]) -> list[bool]:
    """Start to follow a cluster with one node without GPUs; of each node, whether claims alone offer its devices.

    answers  objects by path, beside the node; what is absent is answered with 404, unless ``refused`` has its status
    """
    node = {"metadata": {"name": "n1", "resourceVersion": "1"}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}}
    there = {"/api/v1/nodes": {"items": [node]}, "/api/v1/pods": {"items": []}, **answers}

    async def handle(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            await asyncio.sleep(60)
        if request.path not in there or request.path in refused:
            return web.Response(text="404 page not found", status=refused.get(request.path, 404))
        return web.json_response(there[request.path])

    async with AsyncExitStack() as stack:
        configuration = Configuration(host=await stack.enter_async_context(serving(handle)))

        async def credentials() -> Configuration:
            return configuration

        api = KubeApi(configuration, credentials=credentials, max_requests=4, timeout_s=30)
        stack.push_async_callback(api.close)
        tracker = Tracker(pool="default", clock=SystemClock(), stuck_grace_s=60, listener=Listener())
        stack.callback(tracker.close)
        capacity_tracker = capacity_tracker_of(tracker)
        background = await stack.enter_async_context(Background())
        await ClusterInformers(api, launcher="l", capacity_tracker=capacity_tracker, background=background).start()
        found = await capacity_tracker.capacity()
        return [found.shapes[each.shape].claims_only for each in found.nodes if each.shape is not None]


def preferring(version: str) -> Json:
    return {"kind": "APIGroup", "preferredVersion": {"groupVersion": f"resource.k8s.io/{version}", "version": version}}


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {GROUP: preferring("v1alpha2")},  # Kubernetes 1.26 to 1.29 with the alpha
        {GROUP: {"kind": "APIGroup"}},
        {GROUP: preferring(""), f"{GROUP}//resourceslices": {"items": [SLICE]}},
    ],
)
async def test_a_server_without_slices_does_not_keep_the_launcher_from_its_nodes(answers: dict[str, Json]) -> None:
    assert await claims_only_of(answers, refused={}) == [False]


async def test_slices_are_read_in_the_version_that_the_server_prefers() -> None:
    answers = {GROUP: preferring("v1beta1"), f"{GROUP}/v1beta1/resourceslices": {"items": [SLICE]}}
    assert await claims_only_of(answers, refused={}) == [True]


async def test_nodes_that_are_not_served_are_no_matter_of_the_release() -> None:
    with pytest.raises(Refused):
        await claims_only_of({}, refused={"/api/v1/nodes": 404})
