"""Readiness of a launcher, with an API server that says what the test wants; needs no cluster."""

from __future__ import annotations

import pytest
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from deploy.local.servers.ports import free_port
from libs.errors import Unavailable
from services.launcher.backends.kubernetes.client.api import KubeApi
from services.launcher.backends.kubernetes.client.connection import check, problem_of
from services.launcher.backends.kubernetes.settings import KubernetesSettings
from tests.integration.launcher.backends.kubernetes.client.faulty import serving


async def test_an_api_server_that_refuses_or_is_away_is_a_problem_in_its_words() -> None:
    answers = [
        web.json_response({"gitVersion": "v1.33.0"}),
        web.json_response({"kind": "Status", "code": 403, "message": "no rights"}, status=403),
        web.json_response({"kind": "Status", "code": 500, "message": "etcd is away"}, status=500),
    ]

    async def handle(_: web.Request) -> web.StreamResponse:
        return answers.pop(0)

    async def credentials() -> Configuration:
        raise AssertionError("nothing was wrong with the first ones")

    async with serving(handle) as url:
        api = KubeApi(Configuration(host=url), credentials=credentials, max_requests=1, timeout_s=5)
        assert await problem_of(api) is None
        assert await problem_of(api) == "no rights"
        assert "etcd is away" in (await problem_of(api) or "")
    assert "does not answer" in (await problem_of(api) or "")
    await api.close()


async def test_an_api_server_behind_a_policy_is_reported_with_the_policy_and_the_value() -> None:
    async def credentials() -> Configuration:
        raise AssertionError("nobody refused them")

    hint = "The NetworkPolicy resolute-launcher-det lets through port 443: see networkPolicy.kubernetesApiPorts"
    settings = KubernetesSettings(connect_patience_s=0, unreachable_hint=hint)
    api = KubeApi(
        Configuration(host=f"http://127.0.0.1:{free_port()}"), credentials=credentials, max_requests=1, timeout_s=5
    )
    try:
        with pytest.raises(Unavailable, match=r"cannot reach the Kubernetes .*networkPolicy\.kubernetesApiPorts"):
            await check(api, "ns", settings)
    finally:
        await api.close()
