from __future__ import annotations

from typing import Any

import pytest

from libs.cluster.config import AgentIdentity, TaskContainerDefaults
from libs.config.defaults import CPU_IMAGE, with_defaults
from libs.config.experiment import normalise_experiment_config
from libs.events.orders import Owner
from libs.tasks.checkpoint_gc import checkpoint_gc_task, client_storage
from libs.tasks.environments import AgentLink, environment_of, owner_of_task, proxy_ports_of
from libs.tasks.stored import from_document, to_document
from services.scheduler.queue.ports import BASES, PortRegistry


def stored(**config: Any) -> dict[str, Any]:
    given = {"entrypoint": "x", "searcher": {"name": "single", "metric": "loss"}, **config}
    return with_defaults(normalise_experiment_config(given), seed=1, name="n")


def test_environment_is_that_of_the_slot_type() -> None:
    section = stored(
        environment={
            "image": {"cpu": "c", "cuda": "g"},
            "environment_variables": {"cpu": ["A=1"], "cuda": ["B=2", "C"]},
            "registry_auth": {"username": "u"},
            "ports": {"metrics": 8000, "debug": 80},
        }
    )["environment"]
    assert environment_of(section, "cuda").image == "g"
    assert environment_of(section, "cuda").variables == ("B=2", "C")
    assert environment_of(section, "cpu").variables == ("A=1",)
    assert environment_of(section, "cpu").registry_auth == {"username": "u"}
    assert environment_of(section, "cpu").ports == (8000, 80)
    assert environment_of(stored()["environment"], "cpu").ports == ()


def test_proxied_ports_of_a_trial_are_named_after_the_task_and_the_port() -> None:
    section = stored(environment={"proxy_ports": [{"proxy_port": 80, "proxy_tcp": True}]})["environment"]
    [port] = proxy_ports_of(section, "1.x")
    assert (port.service_id, port.port, port.proxy_tcp) == ("1.x:80", 80, True)


NOBODY = AgentLink()
ALICE = AgentLink(uid=7, user="alice", gid=8, group="staff")


@pytest.mark.parametrize(
    ("user", "workspace", "expected"),
    [
        (NOBODY, NOBODY, Owner(username="a", uid=0, user="root", gid=0, group="root")),
        (ALICE, NOBODY, Owner(username="a", uid=7, user="alice", gid=8, group="staff")),
        (ALICE, AgentLink(gid=9, group="lab"), Owner(username="a", uid=7, user="alice", gid=9, group="lab")),
        (ALICE, AgentLink(uid=1, user="w"), Owner(username="a", uid=1, user="w", gid=8, group="staff")),
    ],
)
def test_posix_identity(user: AgentLink, workspace: AgentLink, expected: Owner) -> None:
    assert owner_of_task("a", default=AgentIdentity(), user=user, workspace=workspace) == expected


def test_ports_are_the_lowest_free_ones() -> None:
    registry = PortRegistry([12350, 12361])
    first, second = registry.reserve(), registry.reserve()
    assert first is not None
    assert second is not None
    assert list(first.values()) == [12351, 12360, 12365, 29400]
    assert list(second.values()) == [12352, 12362, 12366, 29401]
    everything = [*first.values(), *second.values()]
    for _ in range(50):
        everything += (registry.reserve() or {}).values()
    assert len(everything) == len(set(everything)) == 52 * len(BASES)


def test_ports_may_run_out() -> None:
    registry = PortRegistry(range(29401, 65536))
    assert registry.reserve() is not None
    assert registry.reserve() is None
    assert registry.reserve() is None


def test_gc_task_takes_software_from_the_cluster_and_variables_from_the_experiment() -> None:
    config = stored(
        environment={"image": "mine", "environment_variables": ["KEY=1"], "pod_spec": {"spec": {"hostIPC": True}}},
        bind_mounts=[{"host_path": "/a", "container_path": "/b"}],
    )
    storage = {"type": "s3", "bucket": "b", "prefix": None}
    task = checkpoint_gc_task(
        experiment_id=5, config=config, storage=storage, checkpoints=[], delete_tensorboards=True,
        defaults=TaskContainerDefaults(),
    )  # fmt: skip
    assert (task.environment.image, task.environment.variables) == (CPU_IMAGE, ("KEY=1",))
    assert task.environment.pod_spec == {"spec": {"hostIPC": True}}
    assert task.argv[-1] == "--delete-tensorboards"
    assert "--delete" not in task.argv
    assert task.bind_mounts[0].container_path == "/b"
    assert task.shared_fs_host_path is None
    own_spec = TaskContainerDefaults(image={"cpu": "i"}, checkpoint_gc_pod_spec={"spec": {}})
    task = checkpoint_gc_task(experiment_id=5, config=config, storage=storage, checkpoints=["c"], defaults=own_spec)
    assert (task.environment.image, task.environment.pod_spec) == ("i", {"spec": {}})
    none_at_all = TaskContainerDefaults(checkpoint_gc_pod_spec={})
    bare = checkpoint_gc_task(experiment_id=5, config=config, storage=storage, checkpoints=["c"], defaults=none_at_all)
    assert bare.environment.pod_spec == {}, "an empty one takes the place of the experiment's too"
    assert from_document(to_document(task)) == task


def test_storage_has_only_the_keys_that_the_client_takes() -> None:
    azure = {"type": "azure", "container": "c", "connection_string": "s", "account_url": None, "credential": None}
    assert client_storage(azure) == {"type": "azure", "container": "c", "connection_string": "s"}
    shared = {"type": "shared_fs", "host_path": "/h", "storage_path": None, "checkpoint_path": None}
    assert client_storage(shared) == {"type": "shared_fs", "host_path": "/h", "storage_path": None}
