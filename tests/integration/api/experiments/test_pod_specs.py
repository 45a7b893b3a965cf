"""Pod specs from where they are written to the stored configuration: cluster, pool, template and task.

Acceptance item A5 of docs/reference/kubernetes.md 20: every example of section 6.3 on every layer, and the texts of
section 5.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from msgspec import structs

from libs.cluster.config import ClusterConfig, PoolConfig, TaskContainerDefaults
from libs.podspec import MAIN_CONTAINER
from tests.harness import NatsServer
from tests.harness.containers import ContainerNats
from tests.harness.processes import REPOSITORY
from tests.integration.api.experiments.conftest import CLUSTER, Api, serving
from tests.scenarios.pod_merges import EXAMPLES, NVIDIA, Example

pytestmark = pytest.mark.asyncio(loop_scope="module")

Object = dict[str, Any]

TRAIN = {"entrypoint": "run", "searcher": {"name": "single", "metric": "loss"}}
ELSEWHERE = {"spec": {"hostname": "of-the-cluster", "volumes": [{"name": "clusters", "emptyDir": {}}]}}
"""What must not be seen where something else takes its place."""

FULL = {
    "spec": {
        "containers": [{"name": "side", "env": [{"name": "A"}]}],
        "volumes": [{"name": "v"}],
        "imagePullSecrets": [{"name": "q"}],
    }
}
# The pool "pool-<n>" has the base of example n; "bare" has defaults that are empty.
POOLS = {f"pool-{number}": example.base for number, example in enumerate(EXAMPLES)} | {"bare": {}, "full": FULL}


@dataclass(frozen=True)
class Front:
    """One address of an api, with a cluster configuration of its own."""

    api: Api
    url: str
    _numbers: Any

    async def template(self, pod: Object | None, **fields: Any) -> str:
        name = f"pods-{next(self._numbers)}"
        await self.api.ok("PUT", f"{self.url}/api/v1/templates/{name}", json={"config": with_pod(pod, **fields)})
        return name

    async def create(self, pod: Object | None, *, template: str = "", **fields: Any) -> int:
        """The id of a new experiment."""
        body = {"config": json.dumps({**TRAIN, **with_pod(pod, **fields)}), "template": template}
        created = await self.api.ok("POST", f"{self.url}/api/v1/experiments", json=body)
        return int(created["experiment"]["id"])

    async def config(self, experiment_id: int) -> Object:
        """As ``det experiment config`` shows it."""
        found = await self.api.ok("GET", f"{self.url}/api/v1/experiments/{experiment_id}")
        config: Object = found["experiment"]["config"]
        return config

    async def pod(self, pod: Object | None, **fields: Any) -> Any:
        """The stored pod of a new experiment that asks for ``pod``."""
        return (await self.config(await self.create(pod, **fields)))["environment"]["pod_spec"]

    async def refused(self, pod: Any, *, template: str = "", **fields: Any) -> str:
        body = {"config": json.dumps({**TRAIN, **with_pod(pod, **fields)}), "template": template}
        return await self.api.refused(400, "POST", f"{self.url}/api/v1/experiments", json=body)


def with_pod(pod: Any, **fields: Any) -> Object:
    return {**fields, "environment": {} if pod is None else {"pod_spec": pod}}


def slots(number: int, pool: str = "") -> Object:
    return {"slots_per_trial": number, "resource_pool": pool}


@asynccontextmanager
async def front(api: Api, defaults: Object, pools: dict[str, Object] | None = None) -> AsyncIterator[Front]:
    """An api whose cluster has ``defaults``, and ``pools`` with those of their own."""
    special = tuple(PoolConfig(pool_name=name, task_container_defaults=each) for name, each in (pools or {}).items())
    cluster: ClusterConfig = structs.replace(
        CLUSTER,
        task_container_defaults=TaskContainerDefaults(**defaults),
        resource_pools=(*CLUSTER.resource_pools, *special),
    )
    async with serving(replace(api.app, cluster=cluster)) as url:
        yield Front(api, url, itertools.count(id(url)))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def layered(api: Api) -> AsyncIterator[Front]:
    """A cluster with defaults that none of ``POOLS`` wants for tasks with slots."""
    defaults = {"gpu_pod_spec": ELSEWHERE, "cpu_pod_spec": ELSEWHERE}
    async with front(api, defaults, {name: {"gpu_pod_spec": base} for name, base in POOLS.items()}) as opened:
        yield opened


EVERY = pytest.mark.parametrize("example", EXAMPLES, ids=attrgetter("name"))


def pool_of(example: Example) -> Object:
    return slots(1, f"pool-{EXAMPLES.index(example)}")


@EVERY
async def test_task_over_cluster(api: Api, example: Example) -> None:
    async with front(api, {"gpu_pod_spec": example.base, "cpu_pod_spec": ELSEWHERE}) as opened:
        assert await opened.pod(example.patch) == example.result
        assert await opened.pod(None) == (example.base or None), "nobody wanted anything else"


@EVERY
async def test_task_over_pool_that_replaces_the_clusters(layered: Front, example: Example) -> None:
    assert await layered.pod(example.patch, resources=pool_of(example)) == example.result


@EVERY
async def test_template_over_pool(layered: Front, example: Example) -> None:
    template = await layered.template(example.patch)
    assert await layered.pod(None, template=template, resources=pool_of(example)) == example.result


@EVERY
async def test_task_over_template(layered: Front, example: Example) -> None:
    template = await layered.template(example.base, resources=slots(1, "bare"))
    assert await layered.pod(example.patch, template=template) == example.result


@EVERY
async def test_task_over_template_over_pool(layered: Front, example: Example) -> None:
    template = await layered.template(example.patch, resources=pool_of(example))
    assert await layered.pod(example.patch, template=template) == example.result
    assert await layered.pod({}, template=template) == example.result


async def test_a_layer_meets_all_those_below_it(api: Api) -> None:
    cluster = {"spec": {"hostname": "h", "tolerations": [{"key": "a"}], "containers": [{"name": "x"}, {"name": "y"}]}}
    async with front(api, {"gpu_pod_spec": cluster}) as opened:
        template = await opened.template(
            {"spec": {"tolerations": None, "subdomain": "t", "containers": [{"name": "x", "$patch": "delete"}]}}
        )
        task = {"spec": {"hostname": None, "containers": [{"name": "y", "image": "mine"}, {"name": "x"}]}}
        assert await opened.pod(task, template=template) == {
            "spec": {"subdomain": "t", "containers": [{"name": "y", "image": "mine"}, {"name": "x"}]}
        }


async def test_slots_choose_between_the_defaults(api: Api) -> None:
    def labelled(name: str) -> Object:
        return {"metadata": {"labels": {"from": name}}}

    kinds = ("cpu_pod_spec", "gpu_pod_spec", "checkpoint_gc_pod_spec")
    cluster = {kind: labelled(f"cluster {kind}") for kind in kinds}
    pools: dict[str, Object] = {
        "gpu": {"gpu_pod_spec": labelled("pool gpu")},
        "cpu": {"cpu_pod_spec": labelled("pool cpu")},
        "empty": {"gpu_pod_spec": {}, "image": "theirs"},
    }
    async with front(api, {**cluster, "network_mode": "host"}, pools) as opened:
        cases: list[tuple[str, int | None, Object | None]] = [
            ("", None, labelled("cluster gpu_pod_spec")),
            ("", 2, labelled("cluster gpu_pod_spec")),
            ("", 0, labelled("cluster cpu_pod_spec")),
            ("gpu", 1, labelled("pool gpu")),
            ("gpu", 0, labelled("cluster cpu_pod_spec")),
            ("cpu", 1, labelled("cluster gpu_pod_spec")),
            ("cpu", 0, labelled("pool cpu")),
            ("empty", 1, None),
            ("empty", 0, labelled("cluster cpu_pod_spec")),
        ]
        for pool, number, pod in cases:
            resources = {"resource_pool": pool} if number is None else slots(number, pool)
            assert await opened.pod(None, resources=resources) == pod, (pool, number)
        template = await opened.template(None, resources=slots(0, "cpu"))
        assert await opened.pod(None, template=template) == labelled("pool cpu"), "slots of the template count"
        assert await opened.pod(None, template=template, resources={"slots_per_trial": 1}) == cluster["gpu_pod_spec"]
        theirs = await opened.config(await opened.create(None, resources=slots(1, "empty")))
        assert theirs["environment"]["image"] == dict.fromkeys(("cpu", "cuda", "rocm"), "theirs")


async def test_later_defaults_leave_what_is_stored(api: Api) -> None:
    async with front(api, {"gpu_pod_spec": {"spec": {"hostname": "before"}}}) as before:
        experiment_id = await before.create({"spec": {"tolerations": None}})
    async with front(api, {"gpu_pod_spec": {"spec": {"hostname": "after", "tolerations": [{"key": "a"}]}}}) as after:
        config = await after.config(experiment_id)
    assert config["environment"]["pod_spec"] == {"spec": {"hostname": "before"}}


async def test_the_nvidia_example_is_taken_as_it_is(api: Api) -> None:
    written = yaml.safe_load(NVIDIA)
    async with front(api, {}, {"A100": {}}) as opened:
        body = {"config": NVIDIA + "entrypoint: run\nsearcher: {name: single, metric: loss}\n"}
        created = await api.ok("POST", f"{opened.url}/api/v1/experiments", json=body)
    config = created["config"]
    assert config["resources"]["resource_pool"] == "A100"
    assert config["environment"]["image"]["cuda"] == written["environment"]["image"]
    assert config["environment"]["pod_spec"] == written["environment"]["pod_spec"]


EXPERIMENT = "invalid experiment configuration: version 0 experiment config is invalid: config is invalid: <config>"
NOT_HERE = ", set it in the experiment config"

REFUSED: list[tuple[Object, str, str]] = [
    ({"metadata": {"name": "x"}}, ".metadata", "pod Name is not a configurable option"),
    ({"metadata": {"namespace": "x"}}, ".metadata", "pod Namespace is not a configurable option"),
    ({"name": "x"}, "", "pod Name is not a configurable option"),
    ({"name_space": "x"}, "", "pod NameSpace is not a configurable option"),
    ({"spec": {"hostNetwork": True}}, ".spec", "host networking must be configured via master.yaml"),
    *(
        ({"spec": {"containers": [{"name": "side"}, {**name, field: value}]}}, ".spec.containers[1]", message)
        for name in ({"name": MAIN_CONTAINER}, {})
        for field, value, message in [
            ("image", "x", f"container Image is not configurable{NOT_HERE}"),
            ("command", ["x"], "container Command is not configurable"),
            ("args", ["x"], "container Args are not configurable"),
            ("workingDir", "/x", "container WorkingDir is not configurable"),
            ("working_dir", "/x", "container WorkingDir is not configurable"),
            ("ports", [{"containerPort": 1}], "container Ports are not configurable"),
            ("livenessProbe", {}, "container LivenessProbe is not configurable"),
            ("readinessProbe", {}, "container ReadinessProbe is not configurable"),
            ("startupProbe", {}, "container StartupProbe is not configurable"),
            ("lifecycle", {}, "container Lifecycle is not configurable"),
            ("terminationMessagePath", "/x", "container TerminationMessagePath is not configurable"),
            ("terminationMessagePolicy", "File", "container TerminationMessagePolicy is not configurable"),
            ("imagePullPolicy", "Always", f"container ImagePullPolicy is not configurable{NOT_HERE}"),
            ("security_context", {}, f"container SecurityContext is not configurable{NOT_HERE}"),
        ]
    ),
]


@pytest.mark.parametrize(("pod", "path", "message"), REFUSED, ids=[json.dumps(pod) for pod, _, _ in REFUSED])
async def test_what_is_not_the_users_to_say_is_refused(layered: Front, pod: Object, path: str, message: str) -> None:
    text = f"{EXPERIMENT}.environment.pod_spec{path}: {message}"
    assert await layered.refused(pod) == text
    template = await layered.template(pod)
    assert await layered.refused(None, template=template) == f"template '{template}': {text}"


async def test_all_mistakes_are_told_at_once(layered: Front) -> None:
    pod = {"metadata": {"name": "x"}, "spec": {"hostNetwork": True, "containers": [{"command": ["x"], "image": "y"}]}}
    lines = (await layered.refused(pod)).removeprefix(EXPERIMENT).split("\n<config>")
    assert lines == [
        ".environment.pod_spec.metadata: pod Name is not a configurable option",
        ".environment.pod_spec.spec.containers[0]: container Command is not configurable",
        f".environment.pod_spec.spec.containers[0]: container Image is not configurable{NOT_HERE}",
        ".environment.pod_spec.spec: host networking must be configured via master.yaml",
    ]


async def test_restart_policy_and_unknown_fields_are_taken(layered: Front) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {
            "restartPolicy": "Always",
            "hostNetwork": False,
            "affinity": {"nodeSelectorTerms": [{"matchExpressions": []}]},
            "containers": [{"name": MAIN_CONTAINER, "securityContext": {"runAsUser": 5}, "tty": True}],
        },
    }
    assert await layered.pod(pod, resources=slots(1, "bare")) == pod


NO_PODS: list[Any] = [
    "pod", 5, [], [{}], True, {"spec": 5}, {"spec": []}, {"metadata": "m"}, {"spec": {"containers": {}}},
    {"spec": {"containers": ["x"]}}, {"spec": {"containers": [[]]}}, {"spec": {"volumes": [5]}},
    {"spec": {"volumes": [{"name": None}]}},
    {"spec": {"containers": [{"name": "side", "env": ["A=B"]}]}}, {"spec": {"imagePullSecrets": ["q"]}},
    {"spec": {"containers": [{"name": "side", "env": [{}]}]}},
]  # fmt: skip


@pytest.mark.parametrize("pod", NO_PODS, ids=json.dumps)
async def test_what_is_no_pod_is_the_users_mistake(layered: Front, pod: Any) -> None:
    assert "pod" in await layered.refused(pod, resources=slots(1, "full"))
    if isinstance(pod, dict):
        template = await layered.template(pod, resources=slots(1, "full"))
        assert "pod" in await layered.refused(None, template=template)


SENSELESS: list[Object] = [
    {"spec": {"volumes": [{"$patch": "delete"}]}}, {"spec": {"$patch": "swap"}}, {"spec": {"$retainKeys": 5}},
    {"spec": {"$setElementOrder/volumes": "v"}}, {"spec": {"$deleteFromPrimitiveList/volumes": 1}}, {"$patch": []},
    {"$patch": {"a": 1}},
]  # fmt: skip


@pytest.mark.parametrize("pod", SENSELESS, ids=json.dumps)
async def test_no_experiment_fails_on_a_directive(layered: Front, pod: Object) -> None:
    untouched = await layered.pod(None, resources=slots(1, "full"))
    assert await layered.pod(pod, resources=slots(1, "full")) == untouched
    template = await layered.template(pod, resources=slots(1, "full"))
    assert await layered.pod(None, template=template) == untouched


@pytest.mark.parametrize("service", ["api", "scheduler", "launcher"])
async def test_no_service_starts_with_defaults_that_break_the_rules(
    service: str, database_url: str, nats_server: NatsServer | ContainerNats, tmp_path: Path
) -> None:
    cluster = {
        "task_container_defaults": {"cpu_pod_spec": {"metadata": {"name": "x"}, "spec": {"hostNetwork": True}}},
        "resource_pools": [
            {"pool_name": "default"},
            {
                "pool_name": "other",
                "task_container_defaults": {
                    "checkpoint_gc_pod_spec": {"spec": {"containers": [{"name": MAIN_CONTAINER, "args": ["a", "b"]}]}}
                },
            },
        ],
    }
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(cluster))
    settings: Object = {"bus": {"url": nats_server.url}, "cluster_config": str(tmp_path / "cluster.yaml")}
    if service == "launcher":
        settings |= {"pool": "default", "backend": "kubernetes"}
    else:
        settings["database"] = {"url": database_url}
    (tmp_path / "settings.yaml").write_text(yaml.safe_dump(settings))
    started = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", f"services.{service}.main", "--settings", str(tmp_path / "settings.yaml")],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    own, theirs = "root.task_container_defaults.cpu_pod_spec", "root.resource_pools[1].task_container_defaults"
    assert started.returncode == 1, started.stderr
    assert started.stderr.endswith(
        f"resolute-{service}: Check Failed! 3 errors found:\n"
        f"\terror found at {theirs}.checkpoint_gc_pod_spec: container Args are not configurable: 2 does not equal 0\n"
        f"\terror found at {own}: host networking must be configured via master.yaml: expected false, got true\n"
        f"\terror found at {own}: pod Name is not a configurable option: x does not equal \n"
    )
