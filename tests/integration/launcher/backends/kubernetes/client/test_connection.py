"""Readiness of a launcher, with an API server that says what the test wants; needs no cluster."""

from __future__ import annotations

from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from services.launcher.backends.kubernetes.client.api import KubeApi
from services.launcher.backends.kubernetes.client.connection import problem_of
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
