"""What somebody without any right of an administrator can read, name or join of an installation by pods: nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest

from tests.harness.client import Client
from tests.harness.installation import NAMESPACE, POOLS, RELEASE, Installation
from tests.harness.kubectl import Kubectl
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.programs import configuration, create_arguments, submit

pytestmark = [pytest.mark.installation, pytest.mark.timeout(600)]

Json = dict[str, Any]

POOL: Final = "here"
HELD: Final = (
    f"resolute-generated-{RELEASE}",
    f"resolute-nats-config-{RELEASE}",
    f"determined-master-config-{RELEASE}",
)
"""Secrets and ConfigMaps with the passwords of the installation."""
LEAVING: Final[dict[str, Json]] = {
    "hostPID": {"spec": {"hostPID": True}},
    "hostIPC": {"spec": {"hostIPC": True}},
    "mounts / of the node": {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}},
    "privileged": {"spec": {"containers": [{"name": "determined-container", "securityContext": {"privileged": True}}]}},
    "nodeName": {"spec": {"nodeName": "node-real"}},
    "priorityClassName": {"spec": {"priorityClassName": "system-cluster-critical"}},
    "automountServiceAccountToken": {"spec": {"automountServiceAccountToken": True}},
    "enableServiceLinks": {"spec": {"enableServiceLinks": True}},
    "finalizers": {"metadata": {"finalizers": ["example.com/stay"]}},
}
"""What a pod spec of a user is refused for -> one that says so."""
JOINING: Final = {
    "app": f"determined-master-{RELEASE}",
    "release": RELEASE,
    "determined-system": "master",
    "app.kubernetes.io/name": "resolute",
    "job-name": "x",
}
"""Labels by which Services, policies or controllers of the installation could take a pod for theirs."""


def with_pod(pod: Json, **config: Any) -> Json:
    return {"resources": {"slots_per_trial": 1, "resource_pool": POOL}, "environment": {"pod_spec": pod}, **config}


@pytest.fixture(scope="module")
def plain(look: Looking) -> None:
    """The user of these tests is not an administrator."""
    assert look.get("/me")["user"]["admin"] is False


@pytest.fixture(scope="module")
def http(installation: Installation, plain: None) -> Iterator[httpx.Client]:
    with installation.http() as http:
        yield http


@pytest.mark.parametrize("said", LEAVING)
def test_a_pod_that_leaves_its_container_is_refused(said: str, det: Client, http: httpx.Client) -> None:
    changes = with_pod(LEAVING[said])
    told = det.fails(*create_arguments(det, "true", **changes))
    assert said in told
    config = {**configuration("true"), **changes}
    http.put("/api/v1/templates/leaving", json={"config": {"environment": changes["environment"]}}).raise_for_status()
    pool = {"resources": {"resource_pool": POOL}}
    for path, body in (
        ("experiments", {"config": json.dumps(config)}),
        ("experiments", {"config": json.dumps(configuration("true")), "template": "leaving"}),
        ("commands", {"config": {**pool, "environment": changes["environment"], "entrypoint": ["true"]}}),
        ("notebooks", {"config": pool, "templateName": "leaving"}),
        ("shells", {"config": pool, "templateName": "leaving"}),
        ("generic-tasks", {"config": json.dumps({"environment": changes["environment"], "entrypoint": ["true"]})}),
    ):
        answer = http.post(f"/api/v1/{path}", json=body)
        assert answer.status_code == 400, (path, answer.text)
        assert said in answer.text, path


def test_directories_of_nodes_are_refused(det: Client, plain: None) -> None:
    mounts = {"bind_mounts": [{"host_path": "/etc", "container_path": "etc"}]}
    assert "bind_mounts[0].host_path" in det.fails(*create_arguments(det, "true", **mounts))
    storage = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/root"}}
    assert "checkpoint_storage.host_path" in det.fails(*create_arguments(det, "true", **storage))


@pytest.mark.parametrize("key", JOINING)
def test_a_pod_cannot_join_the_installation(key: str, det: Client, plain: None) -> None:
    pod = {"metadata": {"labels": {key: JOINING[key]}}}
    assert key in det.fails(*create_arguments(det, "true", **with_pod(pod)))


def endpoints(installation: Installation) -> set[str]:
    """Addresses behind the Service of the api."""
    path = "jsonpath={.subsets[*].addresses[*].ip}"
    return set(installation.kubectl("get", "endpoints", f"determined-master-service-{RELEASE}", "-o", path).split())


def addresses_of_api(installation: Installation) -> set[str]:
    pods = installation.kubectl.items("pods", f"release={RELEASE},determined-system=master")
    return {pod["status"]["podIP"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}


@pytest.mark.parametrize("pool", POOLS)
def test_a_pod_reads_nothing_of_the_installation(
    pool: str, installation: Installation, det: Client, look: Looking, plain: None
) -> None:
    """References to what is elsewhere are taken, since tasks have a namespace of their own; there is nothing behind."""
    sources: list[Json] = [
        {kind: {"name": name, "optional": True}} for name in HELD for kind in ("secret", "configMap")
    ]
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}
    volumes = [
        {"name": "held", "projected": {"sources": sources}},
        {"name": "account", "projected": {"sources": [token]}},
    ]
    container = {
        "name": "determined-container",
        "envFrom": [{f"{kind}Ref": source[kind]} for source in sources for kind in source],
        "volumeMounts": [{"name": each["name"], "mountPath": f"/found/{each['name']}"} for each in volumes],
    }
    changes = with_pod({"spec": {"volumes": volumes, "containers": [container]}})
    changes["resources"]["resource_pool"] = pool
    experiment = submit(
        det, "looking_around.py", entrypoint="python3 looking_around.py /found/held /found/account", **changes
    )
    look.wait(experiment)
    assert endpoints(installation) == addresses_of_api(installation)
    (line,) = [each for each in look.printed(int(look.trial(experiment)["id"])) if each.startswith("{")]
    seen = json.loads(line)
    assert seen["files"] == []
    assert seen["account"] == []
    variables = set(seen["variables"])
    given = installation.kubectl("get", "secret", HELD[0], "-o", "jsonpath={.data}")
    assert variables.isdisjoint(json.loads(given))
    assert [name for name in variables if "DB_SERVICE" in name or name.startswith(("RESOLUTE_", "PG"))] == []
    # The account of the namespace is nobody: the API server refuses it, where policies let anybody come to it at all.
    assert seen["tokens"] == 1
    for answers in seen["answers"].values():
        assert all(each == "403" or each.startswith("unreachable") for each in answers), seen["answers"]


def test_what_is_made_for_tasks_of_others_cannot_be_named(
    installation: Installation, det: Client, look: Looking, plain: None
) -> None:
    victim = submit(det, "sleep 600", resources={"slots_per_trial": 1, "resource_pool": POOL})
    namespace = Kubectl(installation.kubeconfig, POOLS[POOL])
    selector = f"determined.ai/experiment_id={victim}"
    (pod,) = wait_until(lambda: namespace.items("pods", selector), timeout_s=60, what="the pod of a task")
    job = pod["metadata"]["labels"]["job-name"]
    listed = namespace(
        "get", "secrets,configmaps", "-o", "jsonpath={range .items[*]}{.kind} {.metadata.name}{'\\n'}{end}"
    )
    made = [line.split() for line in listed.splitlines() if f" {job}" in line]
    assert {kind for kind, _ in made} == {"Secret", "ConfigMap"}
    named_before = ("Secret", job)  # as releases without a random part named it, which one can guess
    for kind, name in (*made, named_before):
        volume = {"secret": {"secretName": name}} if kind == "Secret" else {"configMap": {"name": name}}
        told = det.fails(*create_arguments(det, "true", **with_pod({"spec": {"volumes": [{"name": "v", **volume}]}})))
        assert name in told
        assert "made for tasks" in told
    det("experiment", "kill", str(victim))
    look.wait(victim, "STATE_CANCELED")


def test_a_workspace_cannot_be_bound_to_the_namespace_of_the_release(http: httpx.Client) -> None:
    made = http.post("/api/v1/workspaces", json={"name": "of a plain user"}).raise_for_status().json()
    meta = {"clusterNamespaceMeta": {"": {"namespace": NAMESPACE}}}
    answer = http.post(f"/api/v1/workspaces/{made['workspace']['id']}/namespace-bindings", json=meta)
    assert answer.status_code == 403, answer.text


def test_storage_of_a_user_leads_the_api_to_nothing_inside(
    installation: Installation, det: Client, http: httpx.Client
) -> None:
    """By address, by the name of a Service, and to the metadata of a cloud; nobody but the api would connect."""
    (bus,) = installation.kubectl.items("pods", f"release={RELEASE},determined-system=nats")
    server = installation.cluster("get", "service", "kubernetes", "-n", "default", "-o", "jsonpath={.spec.clusterIP}")
    addresses = (
        f"http://{bus['status']['podIP']}:8222",
        f"http://resolute-nats-{RELEASE}.{NAMESPACE}.svc.cluster.local:8222",
        f"https://{server}",
        "http://169.254.169.254",
        "http://127.0.0.1:9090",
    )
    made = http.post("/api/v1/workspaces", json={"name": "of storage"}).raise_for_status().json()["workspace"]
    for address in addresses:
        storage = {"type": "s3", "bucket": "inside", "endpoint_url": address}
        told = det.fails(*create_arguments(det, "true", **with_pod({}, checkpoint_storage=storage)))
        assert "checkpoint_storage.endpoint_url" in told
        assert "security.storage_addresses" in told
        changed = http.patch(f"/api/v1/workspaces/{made['id']}", json={"checkpointStorageConfig": storage})
        assert changed.status_code == 400, (address, changed.text)
