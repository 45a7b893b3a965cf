"""One installation with everything that the client may ask about: a cluster with nodes, storage, roles."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from libs.bus import BusSettings
from tests.harness import NatsServer
from tests.harness.api import ApiProcess
from tests.harness.cluster_admin import ClusterAdminThread, FakeClusterAdmin
from tests.harness.containers import ContainerNats
from tests.harness.waiting import wait_until
from tests.integration.api.whole_client.objects import Objects
from tests.integration.api.world import World, new_world, two_nodes
from tests.integration.logs.conftest import service_process

CLUSTER = """
cluster_name: everything
resource_manager:
  type: kubernetes
  cluster_name: here
  default_namespace: default
  max_slots_per_pod: 4
  default_compute_resource_pool: gpus
  default_aux_resource_pool: gpus
resource_pools: [{{pool_name: gpus}}, {{pool_name: others}}]
checkpoint_storage: {{type: shared_fs, host_path: {storage}}}
security: {{authz: {{rbac_ui_enabled: true}}}}
"""


@pytest.fixture(scope="module")
def world(
    database_url: str, nats_server: NatsServer | ContainerNats, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    storage = str(tmp_path_factory.mktemp("storage"))
    with new_world(
        tmp_path_factory.mktemp("api"),
        database_url=database_url,
        bus_url=nats_server.url,
        cluster=CLUSTER.format(storage=storage),
        settings={"release_namespace": "rel", "checkpoint_roots": {storage: storage}},
    ) as world:
        yield world


@pytest.fixture(scope="module")
def objects(world: World, admin: httpx.Client, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Objects]:
    """What there is, while a launcher answers for the cluster, and somebody cares for the logs."""
    [storage] = world.settings["checkpoint_roots"]
    bus = BusSettings(url=world.bus_url, name="logs")
    logs = service_process(world.database_url, bus, log_path=world.directory / "logs.log", writer="leaves")
    with logs, ClusterAdminThread(FakeClusterAdmin("gpus"), world.bus_url) as cluster_admin:
        cluster_admin.namespaces["team"] = False
        world.publish(two_nodes())
        wait_until(lambda: admin.get("/api/v1/agents").json()["agents"], what="the capacity is seen")
        yield Objects(world, admin, directory=tmp_path_factory.mktemp("files"), storage=storage)


@pytest.fixture(scope="module")
def token(api: ApiProcess) -> str:
    """Of an administrator."""
    return api.token()
