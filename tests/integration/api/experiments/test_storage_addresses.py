"""Storage that users name: the api connects to none at a private address, unless an administrator has named it too."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import pytest_asyncio
from msgspec import structs
from sqlalchemy import delete, insert, select

from libs.cluster.config import ResourceManagerConfig, SecurityConfig
from libs.db.tables.checkpoints import storage_hosts
from libs.outbound.forward_proxy import open_forward_proxy
from services.api.actions.storage_addresses import remember_home
from tests.builders import insert_checkpoint, insert_experiment
from tests.harness import NatsServer
from tests.harness.api import ApiProcess
from tests.harness.containers import ContainerNats
from tests.integration.api.experiments.conftest import CLUSTER, Api, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

Object = dict[str, Any]
Serve = Callable[..., AbstractAsyncContextManager[str]]

TRAIN = {"entrypoint": "run", "searcher": {"name": "single", "metric": "loss"}}
NOTHING = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
PUBLIC = "93.184.215.14"


class Listener(ThreadingHTTPServer):
    """A server on loopback that remembers what it was asked for; an empty bucket, or a redirect to somewhere else."""

    def __init__(self, location: str | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.location = location
        self.seen: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Listener

    def do_GET(self) -> None:
        self.server.seen.append(self.headers.get("Proxy-Authorization") or self.path.partition("?")[0])
        self.send_response(307 if self.server.location else 200)
        body = b"" if self.server.location else NOTHING.encode()
        if self.server.location:
            self.send_header("Location", f"{self.server.location}{self.path}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def listening(location: str | None = None) -> Iterator[Listener]:
    with Listener(location) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def serve(api: Api) -> AsyncIterator[Serve]:
    """An api whose tasks are pods; ``allowed`` are its ``security.storage_addresses``."""

    @asynccontextmanager
    async def served(*allowed: str, home: Object | None = None) -> AsyncIterator[str]:
        cluster = structs.replace(
            CLUSTER,
            resource_manager=ResourceManagerConfig(type="kubernetes", max_slots_per_pod=1),
            checkpoint_storage=home or CLUSTER.checkpoint_storage,
            security=SecurityConfig(storage_addresses=allowed or None),
        )
        async with (
            open_forward_proxy() as proxy,
            serving(replace(api.app, cluster=cluster, forward_proxy=proxy)) as url,
        ):
            yield url

    yield served


def bucket(endpoint: str) -> Object:
    return {"type": "s3", "bucket": "b", "access_key": "k", "secret_key": "s", "endpoint_url": endpoint}


def submitted(storage: Object) -> Object:
    return {"config": json.dumps({**TRAIN, "checkpoint_storage": storage})}


async def downloaded(api: Api, url: str, storage: Object) -> tuple[int, str]:
    """The answer to the download of a checkpoint in that storage, which was stored one way or another."""
    async with api.app.db.transaction() as connection:
        experiment = await insert_experiment(connection, config={"checkpoint_storage": storage})
        uuid = await insert_checkpoint(connection, experiment_id=experiment)
    response = await api.client.get(f"{url}/checkpoints/{uuid}", headers={"accept": "application/x-tar"})
    return response.status_code, response.text


def port_of(listener: Listener) -> int:
    return int(listener.server_port)


PRIVATE: list[Callable[[int], Object]] = [
    lambda port: bucket(f"http://127.0.0.1:{port}"),
    lambda port: bucket(f"http://localhost:{port}/"),
    lambda port: bucket(f"http://LOCALHOST.:{port}"),
    lambda port: bucket(f"http://2130706433:{port}"),
    lambda port: bucket(f"http://[::ffff:7f00:1]:{port}"),
    lambda port: bucket(f"http://a:b@127.0.0.1:{port}"),
    lambda port: {
        "type": "azure",
        "container": "c",
        "account_url": f"http://127.0.0.1:{port}/acct",
        "credential": "aw==",
    },
    lambda port: {
        "type": "azure",
        "container": "c",
        "account_url": f"https://127.0.0.1:{port}\\@a.blob.core.windows.net",
    },
    lambda port: {
        "type": "azure",
        "container": "c",
        "connection_string": f"AccountName=acct;AccountKey=aw==;BlobEndpoint=http://127.0.0.1:{port}/acct",
    },
]


@pytest.mark.parametrize("storage_at", PRIVATE)
async def test_a_download_calls_no_private_address(
    api: Api, serve: Serve, listener: Listener, storage_at: Callable[[int], Object]
) -> None:
    storage = storage_at(port_of(listener))
    async with serve() as url:
        status, text = await downloaded(api, url, storage)
        assert status == 400
        assert "is a private address; an administrator can allow it with security.storage_addresses" in text
    assert listener.seen == []


@pytest.mark.parametrize("endpoint", ["foo", "http://", "http://[::1", "http://h:99999", "http://a b"])
async def test_what_is_no_url_is_told_as_such(api: Api, serve: Serve, endpoint: str) -> None:
    for one in (serve(), serve("0.0.0.0/0")):
        async with one as url:
            status, text = await downloaded(api, url, bucket(endpoint))
            assert (status, "no URL" in text) == (400, True)


async def test_tasks_that_are_processes_share_their_network_with_the_api(api: Api, listener: Listener) -> None:
    status, _ = await downloaded(api, api.url, bucket(listener.url))
    assert (status, listener.seen) == (404, ["/b"])


async def test_a_redirect_leads_to_no_private_address(api: Api, serve: Serve, listener: Listener) -> None:
    with listening(listener.url) as redirecting:
        allowed = f"http://localhost:{port_of(redirecting)}"
        async with serve(allowed) as url:
            status, text = await downloaded(api, url, bucket(allowed))
        assert (status, redirecting.seen) == (400, ["/b"])
    assert "redirects to another host" in text
    assert listener.seen == []


async def test_a_name_that_changes_its_address_is_looked_at_again(
    api: Api, serve: Serve, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, real = [PUBLIC, "127.0.0.1"], socket.getaddrinfo

    def resolved(host: Any, *arguments: Any, **options: Any) -> Any:
        return real(answers.pop(0) if host == "rebinding.example" else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    storage = bucket(f"http://rebinding.example:{port_of(listener)}")
    async with serve() as url:
        await api.ok("POST", f"{url}/api/v1/experiments", json=submitted(storage))
        status, text = await downloaded(api, url, storage)
    assert (status, answers, listener.seen) == (400, [], [])
    assert "checkpoint_storage.endpoint_url: rebinding.example" in text


async def test_what_an_administrator_has_named_is_called(
    api: Api, serve: Serve, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = bucket(listener.url)
    async with serve(home={**storage, "bucket": "another"}) as url:
        assert (await downloaded(api, url, storage))[0] == 404
    for allowed in (listener.url, "127.0.0.0/8"):
        async with serve(allowed) as url:
            assert (await downloaded(api, url, storage))[0] == 404
            await api.ok("POST", f"{url}/api/v1/experiments", json=submitted(storage))
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", listener.url)
    async with serve() as url:
        assert (await downloaded(api, url, storage))[0] == 404
    assert listener.seen == ["/b"] * 4, "and nobody was shown the token of the proxy"


async def test_a_global_config_policy_names_for_an_administrator(api: Api, serve: Serve, listener: Listener) -> None:
    storage, path = bucket(listener.url), "/api/v1/config-policies/global/EXPERIMENT"
    policy = {
        "workloadType": "EXPERIMENT",
        "configPolicies": json.dumps({"invariant_config": {"checkpoint_storage": storage}}),
    }
    (await api.admin.put(path, json=policy)).raise_for_status()
    try:
        async with serve() as url:
            assert (await downloaded(api, url, storage))[0] == 404
    finally:
        (await api.admin.delete(path)).raise_for_status()


async def test_what_was_stored_before_and_what_was_home_once_is_called(
    api: Api, serve: Serve, listener: Listener
) -> None:
    storage, port = bucket(listener.url), port_of(listener)
    async with serve() as url:
        try:
            await remember_home(api.app.db, storage)
            await remember_home(api.app.db, storage)
            assert (await downloaded(api, url, storage))[0] == 404
            async with api.app.db.transaction() as connection:
                await connection.execute(insert(storage_hosts).values(host="localhost", port=port))
            assert (await downloaded(api, url, bucket(f"http://localhost:{port}")))[0] == 404
        finally:
            async with api.app.db.transaction() as connection:
                await connection.execute(delete(storage_hosts))
    assert listener.seen == ["/b"] * 2


async def test_the_service_connects_as_its_configuration_says(
    api: Api,
    database_url: str,
    nats_server: NatsServer | ContainerNats,
    listener: Listener,
    tmp_path: Path,
) -> None:
    with listening() as home, listening() as allowed:
        cluster = {
            "resource_manager": {"type": "kubernetes", "max_slots_per_pod": 1},
            "checkpoint_storage": bucket(home.url),
            "security": {"storage_addresses": [allowed.url]},
        }
        (tmp_path / "cluster.yaml").write_text(json.dumps(cluster))
        settings = {"cluster_config": str(tmp_path / "cluster.yaml")}
        bus_url = nats_server.url
        async with AsyncExitStack() as stack:
            process = ApiProcess(tmp_path / "api", database_url=database_url, bus_url=bus_url, settings=settings)
            await asyncio.to_thread(process.__enter__)
            stack.push(process)
            for server, expected in ((home, 404), (allowed, 404), (listener, 400)):
                assert (await downloaded(api, process.url, bucket(server.url)))[0] == expected
        assert (home.seen, allowed.seen, listener.seen) == (["/b"], ["/b"], [])
        async with api.app.db.transaction() as connection:
            known = (await connection.execute(select(storage_hosts.c.port))).scalars().all()
            await connection.execute(delete(storage_hosts))
        assert known == [port_of(home)], "which is wanted when the configuration names another one"


async def test_whoever_names_a_private_address_hears_of_it_at_once(api: Api, serve: Serve) -> None:
    metadata = bucket("http://169.254.169.254")
    said = "endpoint_url: 169.254.169.254:80 is a private address; an administrator can allow it"
    async with serve() as url:
        await api.ok("PUT", f"{url}/api/v1/templates/private", json={"config": {"checkpoint_storage": metadata}})
        ended = await api.create()
        await api.ok("POST", f"/api/v1/experiments/{ended}/kill")
        workspace = (await api.ok("POST", f"{url}/api/v1/workspaces", json={"name": "of storage"}))["workspace"]["id"]
        override = json.dumps({"checkpoint_storage": metadata})
        for method, path, body, field in (
            ("POST", "experiments", submitted(metadata), "checkpoint_storage"),
            (
                "POST",
                "experiments",
                {**submitted({}), "config": json.dumps(TRAIN), "template": "private"},
                "checkpoint_storage",
            ),
            ("POST", "experiments/continue", {"id": ended, "overrideConfig": override}, "checkpoint_storage"),
            ("POST", "workspaces", {"name": "w", "checkpointStorageConfig": metadata}, "checkpointStorageConfig"),
            ("PATCH", f"workspaces/{workspace}", {"checkpointStorageConfig": metadata}, "checkpointStorageConfig"),
        ):
            assert f"{field}.{said}" in await api.refused(400, method, f"{url}/api/v1/{path}", json=body)
        odd = submitted(bucket("http://user:password@minio"))
        assert "must lead to a URL such as" in await api.refused(400, "POST", f"{url}/api/v1/experiments", json=odd)
        for endpoint in (
            "http://nobody-knows-this.invalid:9000",
            f"http://{PUBLIC}",
            "https://s3.eu-west-1.amazonaws.com",
        ):
            await api.ok("POST", f"{url}/api/v1/experiments", json=submitted(bucket(endpoint)))


async def test_an_experiment_that_only_reports_may_have_storage_where_it_runs(api: Api, serve: Serve) -> None:
    body = {**submitted(bucket("http://127.0.0.1:9000")), "unmanaged": True}
    async with serve() as url:
        await api.ok("POST", f"{url}/api/v1/experiments", json=body)
