"""What people write about pods, all the way to the API server of a cluster: item A5 of docs/reference/kubernetes.md 20.

The nodes may be simulated: nothing here needs a container that runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from libs.podspec import MAIN_CONTAINER
from tests.harness.client import Client
from tests.harness.kubectl import Kubectl, new_namespace
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.harness.whole_system import running_system
from tests.programs import submit
from tests.scenarios.pod_merges import EXAMPLES, NVIDIA, Example

pytestmark = pytest.mark.cluster

Object = dict[str, Any]

TRAIN = {"entrypoint": "true", "searcher": {"name": "single", "metric": "loss"}, "max_restarts": 0}
LONG_S = 120
ELSEWHERE = {"spec": {"hostname": "of-the-cluster", "volumes": [{"name": "clusters", "emptyDir": {}}]}}
"""Default of the cluster, which must not be seen in pools that have their own."""
(TWENTY,) = (example for example in EXAMPLES if example.name.startswith("20 "))
INIT_CONTAINER = "determined-init-container"


@dataclass(frozen=True)
class Submitting:
    """Experiments by REST, and what becomes of them in the cluster."""

    http: httpx.Client
    kubectl: Kubectl
    release: str
    """Namespace that is said to be that of the release."""
    det: Client

    def template(self, name: str, config: Object) -> str:
        self.http.put(f"/api/v1/templates/{name}", json={"config": config}).raise_for_status()
        return name

    def experiment(self, config: str, template: str = "") -> int:
        body = {"config": config, "template": template, "activate": True}
        return int(self.http.post("/api/v1/experiments", json=body).raise_for_status().json()["experiment"]["id"])

    def pod_of(self, experiment: int) -> Object:
        """The template of its pods, as the API server keeps it."""
        selector = f"determined.ai/experiment_id={experiment}"
        wait_until(
            lambda: self.kubectl.names("jobs", selector), timeout_s=LONG_S, every_s=0.5, what=f"{experiment} has a Job"
        )
        (job,) = self.kubectl.items("jobs", selector)
        template: Object = job["spec"]["template"]
        return template


@pytest.fixture(scope="module")
def submitting(kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Submitting]:
    with new_namespace(kubeconfig) as kubectl, new_namespace(kubeconfig) as release:
        config = tmp_path_factory.mktemp("cluster") / "cluster.yaml"
        config.write_text(json.dumps(cluster_config(kubectl.namespace, release.namespace)))
        with (
            running_system(kubeconfig=str(kubeconfig), config=str(config), namespace=kubectl.namespace) as system,
            system.http() as http,
        ):
            yield Submitting(http, kubectl, release.namespace, system.det("admin"))


@pytest.fixture(scope="module")
def look(submitting: Submitting) -> Looking:
    return Looking(submitting.http)


def cluster_config(namespace: str, release: str) -> Object:
    pools = {"default": {"cpu_pod_spec": {}}, "twenty": {"cpu_pod_spec": TWENTY.base}, "A100": {"gpu_pod_spec": {}}}
    return {
        "resource_manager": {"type": "kubernetes", "max_slots_per_pod": 8, "default_namespace": namespace},
        "resource_pools": [
            {"pool_name": name, "kubernetes_namespace": namespace, "task_container_defaults": defaults}
            for name, defaults in pools.items()
        ],
        "task_container_defaults": {"cpu_pod_spec": ELSEWHERE, "gpu_pod_spec": ELSEWHERE},
        "checkpoint_storage": {"type": "directory", "container_path": "/checkpoints"},
        "security": {"release_namespace": release},
    }


@pytest.fixture(scope="module")
def suitable_nodes(submitting: Submitting) -> Iterator[None]:
    """Nodes that have what the examples select: where none has, no Job is made."""
    nodes, labels = submitting.kubectl, ("x=1", "y=3", "z=4", "gpu=any")
    nodes("label", "nodes", "--all", "--overwrite", *labels)
    yield
    nodes("label", "nodes", "--all", *(f"{label.partition('=')[0]}-" for label in labels))


@pytest.fixture(scope="module")
def submitted(submitting: Submitting, suitable_nodes: None) -> dict[str, int]:
    """Name of an example -> the experiment whose template has its base, and which has its patch itself."""
    return {
        example.name: submitting.experiment(
            written(example.patch), submitting.template(f"example-{number}", json.loads(written(example.base)))
        )
        for number, example in enumerate(EXAMPLES)
    }


def written(pod: Object, pool: str = "default") -> str:
    resources = {"slots_per_trial": 0, "resource_pool": pool}
    return json.dumps({**TRAIN, "resources": resources, "environment": {"pod_spec": pod}})


ACCEPTED = [example for example in EXAMPLES if not example.refused]
REFUSED = [example for example in EXAMPLES if example.refused]


@pytest.mark.parametrize("example", ACCEPTED, ids=attrgetter("name"))
def test_the_cluster_gets_what_was_merged(submitting: Submitting, submitted: dict[str, int], example: Example) -> None:
    assert_holds(submitting.pod_of(submitted[example.name]), example.result)


@pytest.mark.parametrize("example", REFUSED, ids=attrgetter("name"))
def test_what_the_cluster_refuses_is_said_in_the_log(
    look: Looking, submitted: dict[str, int], example: Example
) -> None:
    experiment = submitted[example.name]
    look.wait(experiment, "STATE_ERROR")
    said = "".join(line["message"] for line in look.logs(look.trial(experiment)["id"]))
    assert example.refused in said


def test_defaults_keep_their_containers_when_a_task_has_none(submitting: Submitting) -> None:
    pod = submitting.pod_of(submitting.experiment(written(TWENTY.patch, pool="twenty")))
    assert_holds(pod, TWENTY.result)


def test_what_a_user_deletes_stays_deleted(submitting: Submitting) -> None:
    delete = {
        "spec": {"containers": [{"name": "side", "$patch": "delete"}, {"name": MAIN_CONTAINER, "volumeMounts": None}]}
    }
    pod = submitting.pod_of(submitting.experiment(written(delete, pool="twenty")))
    names = [container["name"] for container in pod["spec"]["containers"]]
    assert "side" not in names
    assert "/v" not in [mount["mountPath"] for mount in main_of(pod)["volumeMounts"]]


def test_the_nvidia_example_is_taken_as_it_is(submitting: Submitting) -> None:
    config = NVIDIA + "entrypoint: 'true'\nsearcher: {name: single, metric: loss}\n"
    pod = submitting.pod_of(submitting.experiment(config))
    own = yaml.safe_load(NVIDIA)["environment"]
    main = main_of(pod)
    assert main["image"] == own["image"]
    assert [mount["name"] for mount in main["volumeMounts"] if mount["mountPath"] == "/dev/shm"] == ["dshm"]
    assert main["resources"]["limits"]["nvidia.com/gpu"] == "1"
    (sidecar,) = (container for container in pod["spec"]["containers"] if container["name"] == "nvcertjob")
    assert sidecar["resources"]["limits"] == {"nvidia.com/gpu": "0"}
    del own["pod_spec"]["spec"]["containers"][1]["resources"]  # compared just now: numbers come back as text
    assert_holds(pod, {"spec": own["pod_spec"]["spec"]})


def test_what_is_ours_to_say_stays_ours(submitting: Submitting) -> None:
    spec = {
        "restartPolicy": "Always",
        "hostNetwork": False,
        "containers": [{"name": MAIN_CONTAINER, "securityContext": {"runAsUser": 5, "privileged": True}, "tty": True}],
    }
    pod = submitting.pod_of(submitting.experiment(written({"spec": spec})))
    assert pod["spec"]["restartPolicy"] == "Never"
    assert not pod["spec"].get("hostNetwork")
    assert main_of(pod)["securityContext"] == {"runAsUser": 0, "runAsGroup": 0, "privileged": True}
    assert not main_of(pod).get("tty")


@pytest.mark.parametrize(
    ("pool", "spec", "words"),
    [
        ("default", {"hostPID": True}, "spec.hostPID shares a namespace of the node"),
        (
            "twenty",
            {"containers": [{"name": "side", "image": "mine"}]},
            "spec.containers[side] changes a container of the administrator",
        ),
    ],
)
def test_what_baseline_would_refuse_is_said_in_the_log(
    submitting: Submitting, look: Looking, pool: str, spec: Object, words: str
) -> None:
    det = submitting.det
    det("user", "login", "admin", answers=("",))
    words = f"baseline would refuse this task: environment.pod_spec.{words}"
    environment = {"pod_spec": {"spec": spec}}
    resources = {"slots_per_trial": 0, "resource_pool": pool}
    experiment = submit(det, "true", resources=resources, environment=environment, max_restarts=0)
    submitting.pod_of(experiment)
    trial = str(look.trial(experiment)["id"])
    wait_until(lambda: words in det("trial", "logs", trial), timeout_s=LONG_S, what="the log of the trial says it")
    det("experiment", "kill", str(experiment))


def test_a_workspace_that_is_bound_to_the_release_later_leads_to_nothing_there(
    submitting: Submitting, look: Looking
) -> None:
    det = submitting.det
    det("user", "login", "admin", answers=("",))
    det("workspace", "create", "team")
    det("project", "create", "team", "inside")
    secret = {"spec": {"volumes": [{"name": "v", "secret": {"secretName": "resolute-generated-det"}}]}}
    place = {"workspace": "team", "project": "inside", "resources": {"slots_per_trial": 0}}
    experiment = submit(det, "true", "--paused", **place, environment={"pod_spec": secret}, max_restarts=0)
    det("workspace", "bindings", "set", "team", "--namespace", submitting.release)
    det("experiment", "activate", str(experiment))
    look.wait(experiment, "STATE_ERROR")
    said = det("trial", "logs", str(look.trial(experiment)["id"]))
    assert "environment.pod_spec.spec.volumes[0].secret.secretName refers to Secret/resolute-generated-det" in said
    assert "security.references can allow it" in said
    assert not Kubectl(submitting.kubectl.kubeconfig, submitting.release).names("jobs", "determined")


def main_of(pod: Object) -> Object:
    main: Object = pod["spec"]["containers"][-1]
    assert main["name"] == MAIN_CONTAINER
    return main


def not_ours(containers: list[Object]) -> list[Object]:
    """On some releases of Kubernetes what ships the logs is a container, on others an init container that stays."""
    return [each for each in containers if not each["name"].startswith("determined-")]


def assert_holds(pod: Object, wanted: Object) -> None:
    """The pod has all that is wanted of it, in the order that is wanted, with our own things behind.

    Of the main container only what users may say counts. ``restartPolicy`` is ours, and fields that the API server
    fills in, or that nobody set, do not matter.
    """
    spec = dict(wanted.get("spec", {}))
    spec.pop("restartPolicy", None)
    containers, init = pod["spec"]["containers"], pod["spec"]["initContainers"]
    assert init[-1]["name"] == INIT_CONTAINER
    others = [each for each in spec.pop("containers", []) if each["name"] != MAIN_CONTAINER]
    assert has(not_ours(containers), others), (containers, others)
    for own in wanted.get("spec", {}).get("containers", []):
        if own["name"] == MAIN_CONTAINER:
            assert_main_holds(main_of(pod), own)
    assert has(not_ours(init), spec.pop("initContainers", [])), init
    volumes = spec.pop("volumes", [])
    assert has(pod["spec"]["volumes"][: len(volumes)], volumes), pod["spec"]["volumes"]
    for field, value in spec.items():
        assert has(pod["spec"].get(field), value), (field, pod["spec"].get(field))
    for field, value in wanted.get("metadata", {}).items():
        assert has(pod["metadata"][field], value)


def assert_main_holds(main: Object, own: Object) -> None:
    for field, value in own.items():
        given = main.get(field)
        if field in ("env", "volumeMounts"):
            assert isinstance(given, list)
            given = given[len(given) - len(value) :]
        assert has(given, value), (field, given)


def has(given: Any, wanted: Any) -> bool:
    """Whether everything wanted is there; empty and false are the same as nothing, which the API server leaves out.

    In lists there is nothing else, except for the requirement that keeps pods away from disabled nodes.
    """
    if isinstance(wanted, dict) and isinstance(given, dict):
        return all(has(given.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(given, list):
        given = [item for item in given if not is_about_disabled_nodes(item)]
        return len(given) == len(wanted) and all(map(has, given, wanted))
    return bool(given == wanted) or not (given or wanted)


def is_about_disabled_nodes(item: Any) -> bool:
    return isinstance(item, dict) and item.get("operator") == "DoesNotExist" and "determined" in item["key"]
