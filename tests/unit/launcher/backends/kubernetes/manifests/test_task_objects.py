from __future__ import annotations

import base64
import json
import random
from operator import attrgetter
from typing import Any

import msgspec
import pytest

from libs.errors import InvalidRequest
from libs.events.orders import BindMount, Environment, Owner, ProxyPort, TaskFile
from services.launcher.backends.kubernetes.manifests.names import FLUENT, INIT, MAIN
from services.launcher.backends.kubernetes.manifests.task_objects import owned
from services.launcher.backends.kubernetes.settings import ShipperSettings
from tests.unit.launcher.backends.kubernetes.builders import (
    CLUSTER_ID,
    build,
    container,
    environment,
    pod_of,
    unpacked,
    with_pod,
)
from tests.unit.launcher.specs import task, trial

GPU = "nvidia.com/gpu"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    slot_type: str
    slots: int
    num_pods: int = 1
    resources: dict[str, str]
    slot_ids: str
    hidden: bool = False


CASES = [
    Case(name="no slots on cuda", slot_type="cuda", slots=0, resources={}, slot_ids="[]", hidden=True),
    Case(name="one slot", slot_type="cuda", slots=1, resources={GPU: "1"}, slot_ids="[0]"),
    Case(name="a gang", slot_type="cuda", slots=8, num_pods=2, resources={GPU: "4"}, slot_ids="[0,1,2,3]"),
    Case(name="rocm", slot_type="rocm", slots=2, resources={"amd.com/gpu": "2"}, slot_ids="[0,1]"),
    Case(name="cores", slot_type="cpu", slots=3, resources={"cpu": "7500m"}, slot_ids="[0,1,2]", hidden=True),
    Case(name="no slots on cpu", slot_type="cpu", slots=0, resources={}, slot_ids="[]", hidden=True),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_slots_become_pods_resources_and_variables(case: Case) -> None:
    made = build(trial(slots=case.slots, num_pods=case.num_pods), slot_type=case.slot_type, slot_cpu=2.5)
    spec = made.job["spec"]
    assert (spec["parallelism"], spec["completions"], spec["backoffLimit"]) == (case.num_pods, case.num_pods, 0)
    assert pod_of(made)["restartPolicy"] == "Never"
    resources = container(made)["resources"]
    assert resources.get("requests", {}) == resources.get("limits", {}) == case.resources
    variables = environment(made)
    assert variables["DET_SLOT_IDS"] == case.slot_ids
    assert variables["DET_KUBERNETES_JOB_PARALLELISM"] == str(case.num_pods)
    assert variables.get("NVIDIA_VISIBLE_DEVICES") == ("void" if case.hidden else None)


def test_the_resource_of_slots_is_the_pools_to_say() -> None:
    mig = "nvidia.com/mig-1g.5gb"
    pod = with_pod(containers=[{"name": "determined-container", "resources": {"limits": {mig: "9"}}}])
    made = build(trial(slots=2, environment=Environment(image="I", pod_spec=pod)), slot_resource=mig)
    assert container(made)["resources"] == {"requests": {mig: "2"}, "limits": {mig: "2"}}
    without = build(task(slots=0, environment=Environment(image="I", pod_spec=pod)), slot_resource=mig)
    assert container(without)["resources"] == {}


def test_the_worked_example_of_the_specification() -> None:
    spec = trial(
        task="1.x",
        description="exp-1-trial-2-attempt-1",
        experiment_id=1,
        trial_id=2,
        slots=2,
        workspace="Uncategorized",
        owner=Owner(username="determined"),
        environment=Environment(image="I"),
        ports={"DTRAIN_SSH_PORT": 12350},
    )
    made = build(spec, priority_class="determined-priority-50")
    assert made.job["metadata"]["name"] == "det-0a1b2c3d-exp-1-trial-2-attempt-1"
    assert made.job["metadata"]["namespace"] == "ns1"
    pod = made.job["spec"]["template"]
    assert pod["metadata"]["labels"] == made.job["metadata"]["labels"]
    assert pod["spec"]["priorityClassName"] == "determined-priority-50"
    disabled = {"key": f"determined.ai/cluster-id-{CLUSTER_ID}", "operator": "DoesNotExist"}
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required == {"nodeSelectorTerms": [{"matchExpressions": [disabled]}]}
    init = container(made, INIT)
    assert init["image"] == "I"
    assert init["imagePullPolicy"] == "IfNotPresent"
    assert init["command"] == ["/run/determined/temp/k8_init_container_entrypoint.sh"]
    assert init["args"] == ["2", "/run/determined/temp/tar/src", "/run/determined/temp/tar/dst"]
    assert init["workingDir"] == "/run/determined/temp/"
    assert init["securityContext"] == {"runAsUser": 0, "runAsGroup": 0}
    assert not init.keys() & {"env", "resources"}
    main = container(made)
    assert main["workingDir"] == "/run/determined/workdir"
    assert main["command"][-1] == "/run/determined/train/entrypoint.sh"
    assert main["ports"] == [{"containerPort": 1734}, {"containerPort": 12350}]
    assert pod["spec"]["containers"][-1] is main
    assert pod["spec"]["initContainers"][-1] is init


def test_ports_are_named_once_each() -> None:
    spec = trial(
        environment=Environment(image="I", ports=(8000, 80)),
        proxy_ports=(ProxyPort(service_id="1.x:80", port=80),),
        ports={"DTRAIN_SSH_PORT": 12350},
    )
    assert container(build(spec))["ports"] == [{"containerPort": port} for port in (8000, 80, 1734, 12350)]


def test_how_a_task_ended_can_be_read_for_a_while() -> None:
    assert build(trial()).job["spec"]["ttlSecondsAfterFinished"] == 900


def test_tokens_keys_and_configuration_are_in_the_secret_alone() -> None:
    spec = trial(
        ssh_private_key="PRIVATE KEY",
        config={"checkpoint_storage": {"secret_key": "S3SECRET"}},
        session_token="SESSIONTOKEN",
        user_token="USERTOKEN",
        extra_environment=(("AWS_SECRET_ACCESS_KEY", "AWSSECRET"),),
        files=(TaskFile(path="storage_config.json", content=b"FILESECRET"),),
        environment=Environment(variables=("WANDB_API_KEY=WANDB",)),
    )
    made = build(spec)
    public = json.dumps([made.job, made.config_map])
    for secret in ("PRIVATE KEY", "S3SECRET", "SESSIONTOKEN", "USERTOKEN", "AWSSECRET", "FILESECRET", 'WANDB"'):
        assert secret not in public
        assert base64.b64encode(secret.encode()).decode().rstrip("=")[:-1] not in public
    assert not {"run/determined/ssh/id_rsa"} & unpacked(made.config_map["binaryData"]["0.tar.gz"]).keys()
    hidden = unpacked(made.secrets[0]["data"]["1.tar.gz"])
    assert {"determined/ssh/id_rsa", "determined/storage_config.json"} <= hidden.keys()
    variables = environment(made)
    assert variables["DET_SESSION_TOKEN"] == "SESSIONTOKEN"
    assert variables["AWS_SECRET_ACCESS_KEY"] == "AWSSECRET"
    assert variables["WANDB_API_KEY"] == "WANDB"


@pytest.mark.parametrize(
    "task_type", ["TRIAL", "NOTEBOOK", "SHELL", "COMMAND", "TENSORBOARD", "CHECKPOINT_GC", "GENERIC"]
)
def test_archives_unpack_to_what_is_mounted(task_type: str) -> None:
    owner = Owner(username="alice", uid=1000, user="al", gid=1001, group="als")
    spec = trial(owner=owner) if task_type == "TRIAL" else task(task_type, owner=owner)
    made = build(spec)
    files = unpacked(made.config_map["binaryData"]["0.tar.gz"])
    if "1.tar.gz" in made.secrets[0]["data"]:
        files |= unpacked(made.secrets[0]["data"]["1.tar.gz"])
    assert all((item.uid, item.gid) == (1000, 1001) for item in files.values())
    entrypoint = next(part for part in container(made)["command"] if part.endswith("entrypoint.sh"))
    assert files[entrypoint.removeprefix("/run/")].mode & 0o100
    assert files["determined"].mode == 0o700
    assert files["determined"].isdir()
    volumes = {volume["name"]: volume for volume in pod_of(made)["volumes"]}
    for mount in container(made)["volumeMounts"]:
        if mount["name"] == "additional-files-volume":
            assert mount["subPath"] in files
        if mount["name"].startswith("root-volume"):
            items = {item["path"]: item for item in volumes[mount["name"]]["configMap"]["items"]}
            assert items[mount["subPath"]]["key"] in made.config_map["binaryData"]
    size = sum(len(base64.b64decode(value)) for value in made.config_map["binaryData"].values())
    assert size < 64 * 1024


def test_root_owns_its_files_with_their_modes_and_hides_nothing_else() -> None:
    made = build(trial())
    volume = next(each for each in pod_of(made)["volumes"] if each["name"] == "root-volume-0")
    modes = {item["path"]: item["mode"] for item in volume["configMap"]["items"]}
    assert modes == {"ssh_config": 0o644, "passwd": 0o644, "shadow": 0o600, "group": 0o644}
    mounted = {each["mountPath"] for each in container(made)["volumeMounts"]}
    assert "/etc/ssh/ssh_config" in mounted
    assert "/etc/ssh" not in mounted


def test_what_the_job_owns_names_it_as_owner() -> None:
    made = build(trial(environment=Environment(registry_auth={"username": "u", "password": "p"})))
    for manifest in (made.config_map, *made.secrets):
        named = owned(manifest, job=made.name, uid="u-1")
        assert named["metadata"]["ownerReferences"] == [
            {"apiVersion": "batch/v1", "kind": "Job", "name": made.name, "uid": "u-1"}
        ]
        assert "ownerReferences" not in manifest["metadata"]
        assert named["metadata"]["labels"]["determined"] == "1.x.1"


def test_the_agent_user_runs_both_containers_whatever_the_pod_spec_says() -> None:
    wanted = {"runAsUser": 0, "privileged": True, "capabilities": {"add": ["SYS_PTRACE"]}}
    own = {"name": MAIN, "securityContext": wanted}
    spec = task(environment=Environment(pod_spec=with_pod(containers=[own], securityContext={"fsGroup": 7})))
    made = build(spec)
    assert container(made)["securityContext"] == {
        "runAsUser": 1000,
        "runAsGroup": 1001,
        "privileged": True,
        "capabilities": {"add": ["SYS_PTRACE"]},
    }
    assert container(made, INIT)["securityContext"] == {"runAsUser": 1000, "runAsGroup": 1001}
    assert pod_of(made)["securityContext"] == {"fsGroup": 7}


MOUNTS = [
    ("rprivate", {}),
    ("", {}),
    ("nonsense", {}),
    ("private", {"mountPropagation": "None"}),
    ("rslave", {"mountPropagation": "HostToContainer"}),
    ("rshared", {"mountPropagation": "Bidirectional"}),
]


@pytest.mark.parametrize(("propagation", "expected"), MOUNTS)
def test_bind_mounts_with_each_propagation(propagation: str, expected: dict[str, str]) -> None:
    mount = BindMount(host_path="/data", container_path="d", read_only=True, propagation=propagation)
    made = build(task(bind_mounts=(mount,)))
    assert {"name": "det-host-volume-0", "hostPath": {"path": "/data"}} in pod_of(made)["volumes"]
    assert {
        "name": "det-host-volume-0",
        "mountPath": "/run/determined/workdir/d",
        "readOnly": True,
        **expected,
    } in container(made)["volumeMounts"]


def test_shared_fs_comes_after_the_users_mounts() -> None:
    made = build(task(bind_mounts=(BindMount(host_path="/a", container_path="/b"),), shared_fs_host_path="/ckpt"))
    assert {"name": "det-host-volume-1", "hostPath": {"path": "/ckpt"}} in pod_of(made)["volumes"]
    assert {"name": "det-host-volume-1", "mountPath": "/determined_shared_fs"} in container(made)["volumeMounts"]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (None, {"medium": "Memory"}),
        (4 << 30, {"medium": "Memory"}),
        (1 << 30, {"medium": "Memory", "sizeLimit": str(1 << 30)}),
    ],
)
def test_shared_memory_is_limited_only_where_somebody_said_so(size: int | None, expected: dict[str, str]) -> None:
    made = build(task(shm_size_bytes=size))
    assert {"name": "det-shm-volume", "emptyDir": expected} in pod_of(made)["volumes"]


def test_a_mount_of_the_user_takes_the_place_of_ours() -> None:
    own = {"name": MAIN, "volumeMounts": [{"name": "v", "mountPath": "/dev/shm"}, {"name": "v", "mountPath": "/data/"}]}
    spec = task(
        bind_mounts=(BindMount(host_path="/h", container_path="/data"),),
        environment=Environment(pod_spec=with_pod(containers=[own], volumes=[{"name": "v", "emptyDir": {}}])),
    )
    made = build(spec)
    paths = [mount["mountPath"].rstrip("/") for mount in container(made)["volumeMounts"]]
    assert len(paths) == len(set(paths))
    names = {volume["name"] for volume in pod_of(made)["volumes"]}
    assert not names & {"det-shm-volume", "det-host-volume-0"}


def test_the_users_pod_is_kept_but_for_what_is_ours() -> None:
    pod_spec = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "x",
            "labels": {"team": "a", "determined": "forged", "on": True},
            "annotations": {"k": "v"},
        },
        "spec": {
            "restartPolicy": "Always",
            "hostNetwork": True,
            "serviceAccountName": "sa",
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "imagePullSecrets": [{"name": "ngccred"}],
            "containers": [
                {"name": "nvcertjob", "image": "n", "resources": {"limits": {GPU: 0}}},
                {
                    "name": MAIN,
                    "image": "theirs",
                    "command": ["x"],
                    "workingDir": "/x",
                    "env": [{"name": "A", "value": "$(DET_TASK_ID)"}, {"name": "DET_SESSION_TOKEN", "value": "forged"}],
                    "envFrom": [{"secretRef": {"name": "s"}}],
                    "resources": {"requests": {"memory": "1Gi", GPU: "8"}, "limits": {"memory": "2Gi"}},
                    "livenessProbe": {"exec": {"command": ["true"]}},
                },
            ],
            "initContainers": [{"name": "first", "image": "f"}],
        },
    }
    made = build(task(slots=1, session_token="real", environment=Environment(image="ours", pod_spec=pod_spec)))
    pod = pod_of(made)
    assert (pod["restartPolicy"], pod["hostNetwork"], pod["serviceAccountName"]) == ("Never", False, "sa")
    assert [each["name"] for each in pod["containers"]] == ["nvcertjob", FLUENT, MAIN]
    assert [each["name"] for each in pod["initContainers"]] == ["first", INIT]
    main = container(made)
    assert main["image"] == "ours"
    assert main["resources"] == {"requests": {"memory": "1Gi", GPU: "1"}, "limits": {"memory": "2Gi", GPU: "1"}}
    assert main["envFrom"] == [{"secretRef": {"name": "s"}}]
    assert {"name": "A", "value": "$(DET_TASK_ID)"} in main["env"]
    assert "livenessProbe" not in main
    assert environment(made)["DET_SESSION_TOKEN"] == "real"
    metadata = made.job["spec"]["template"]["metadata"]
    assert (metadata["labels"]["team"], metadata["labels"]["determined"]) == ("a", "1.x.1")
    assert metadata["labels"]["on"] == "true"
    assert metadata["annotations"]["k"] == "v"
    assert "name" not in metadata


def test_a_task_without_slots_cannot_help_itself_to_a_gpu() -> None:
    own = {"name": MAIN, "resources": {"limits": {GPU: "8", "memory": "1Gi"}}}
    made = build(task(environment=Environment(pod_spec=with_pod(containers=[own]))))
    assert container(made)["resources"] == {"limits": {"memory": "1Gi"}}


def test_variables_of_the_pod_spec_override_and_may_refer_to_others() -> None:
    own = {"name": MAIN, "env": [{"name": "B", "value": "$(A)/b"}]}
    spec = task(environment=Environment(variables=("A=/a", "B=x", "C=$(A)"), pod_spec=with_pod(containers=[own])))
    entries = container(build(spec))["env"]
    names = [entry["name"] for entry in entries]
    assert names.count("B") == 1
    assert names[-1] == "B"
    assert {"name": "C", "value": "$(A)"} in entries


def test_dollars_that_are_not_the_users_stand_for_themselves() -> None:
    spec = task(argv=("echo $$ $(HOME)",))
    assert container(build(spec))["command"][-1] == "echo $$$$ $$(HOME)"
    assert environment(build(trial(config={"entrypoint": "a $$ $(b)"})))["DET_EXPERIMENT_CONFIG"] == (
        '{"entrypoint":"a $$ $(b)"}'
    )
    assert environment(build(trial(hparams={"x": "$$"})))["DET_HPARAMS"] == '{"x":"$$$$"}'


def test_the_pod_tells_the_task_where_it_is() -> None:
    entries = {entry["name"]: entry for entry in container(build(task()))["env"]}
    for name, path in (
        ("DET_AGENT_ID", "spec.nodeName"),
        ("DET_KUBERNETES_POD_IP", "status.podIP"),
        ("DET_CONTAINER_ID", "metadata.name"),
    ):
        assert entries[name]["valueFrom"] == {"fieldRef": {"fieldPath": path}}


LAYERS: list[tuple[Any, dict[str, Any], str]] = [
    ({"slots": 1}, {"gpu_pod_spec": with_pod(nodeSelector={"a": "gpu"})}, "gpu"),
    ({"slots": 0}, {"cpu_pod_spec": with_pod(nodeSelector={"a": "cpu"})}, "cpu"),
]


@pytest.mark.parametrize(("fields", "defaults", "expected"), LAYERS)
def test_defaults_of_the_pool_lie_below_the_tasks_pod(
    fields: dict[str, Any], defaults: dict[str, Any], expected: str
) -> None:
    own = Environment(pod_spec=with_pod(nodeSelector={"b": "task"}))
    assert pod_of(build(task(**fields, environment=own), **defaults))["nodeSelector"] == {"a": expected, "b": "task"}


def test_the_stored_pod_of_a_trial_has_its_defaults_already() -> None:
    stored = Environment(pod_spec=with_pod(nodeSelector={"b": "stored"}))
    made = build(trial(environment=stored), gpu_pod_spec=with_pod(nodeSelector={"a": "changed since"}))
    assert pod_of(made)["nodeSelector"] == {"b": "stored"}


def test_a_pod_without_containers_leaves_those_of_the_defaults() -> None:
    main = {"name": MAIN, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    defaults = with_pod(containers=[main, {"name": "side"}])
    spec = task(environment=Environment(pod_spec=with_pod(imagePullSecrets=[{"name": "q"}])))
    made = build(spec, cpu_pod_spec=defaults)
    assert [each["name"] for each in pod_of(made)["containers"]] == ["side", FLUENT, MAIN]
    assert {"name": "v", "mountPath": "/v"} in container(made)["volumeMounts"]


NOT_PODS = [
    ({"spec": "x"}, "spec must be an object"),
    ({"spec": {"containers": {"a": 1}}}, "spec.containers must be a list of objects"),
    ({"spec": {"volumes": ["v"]}}, "spec.volumes must be a list of objects"),
    ({"spec": {"containers": [{"name": MAIN, "env": "A=B"}]}}, "env must be a list of objects"),
    ({"metadata": {"labels": ["a"]}}, "metadata.labels must be an object"),
    ({"spec": {"affinity": {"nodeAffinity": []}}}, "spec.affinity.nodeAffinity must be an object"),
    ({"spec": {"initContainers": [{"name": INIT}]}}, "is taken"),
]


@pytest.mark.parametrize(("pod_spec", "words"), NOT_PODS)
def test_what_is_no_pod_is_refused_in_words(pod_spec: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        build(task(environment=Environment(pod_spec=pod_spec)))


def test_too_large_a_task_is_refused_before_anything_is_made() -> None:
    noise = random.Random(1).randbytes(2 << 20)  # that no compression makes smaller
    with pytest.raises(InvalidRequest, match="Kubernetes allows 1048576"):
        build(task(files=(TaskFile(path="big", content=noise),), environment=Environment()))


@pytest.mark.parametrize("variable", ["A B=1", "1A=1", "Ä=1"])
def test_names_of_variables_that_kubernetes_refuses(variable: str) -> None:
    with pytest.raises(InvalidRequest, match="name that Kubernetes does not allow"):
        build(task(environment=Environment(variables=(variable,))))


def test_host_network_comes_from_the_administrator_and_keeps_the_clusters_names() -> None:
    pod = pod_of(build(task(network_mode="host")))
    assert (pod["hostNetwork"], pod["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")


def test_the_users_priority_class_wins() -> None:
    spec = task(environment=Environment(pod_spec=with_pod(priorityClassName="mine")))
    assert pod_of(build(spec, priority_class="determined-priority-50"))["priorityClassName"] == "mine"


def test_private_registries_by_registry_auth() -> None:
    auth = {"username": "u", "password": "p"}
    pod_spec = with_pod(imagePullSecrets=[{"name": "other"}])
    made = build(task(environment=Environment(image="nvcr.io/a:1", registry_auth=auth, pod_spec=pod_spec)))
    secret = made.secrets[1]
    assert pod_of(made)["imagePullSecrets"] == [{"name": "other"}, {"name": secret["metadata"]["name"]}]
    assert secret["type"] == "kubernetes.io/dockerconfigjson"
    config = json.loads(base64.b64decode(secret["data"][".dockerconfigjson"]))
    assert config == {
        "auths": {"nvcr.io": {"username": "u", "password": "p", "auth": base64.b64encode(b"u:p").decode()}}
    }


@pytest.mark.parametrize(
    ("image", "server"),
    [
        ("ubuntu", "https://index.docker.io/v1/"),
        ("docker.io/a/b", "https://index.docker.io/v1/"),
        ("localhost:5000/a", "localhost:5000"),
        ("gcr.io/a/b:c", "gcr.io"),
    ],
)
def test_the_registry_is_that_of_the_image(image: str, server: str) -> None:
    made = build(task(environment=Environment(image=image, registry_auth={"identitytoken": "t"})))
    assert list(json.loads(base64.b64decode(made.secrets[1]["data"][".dockerconfigjson"]))["auths"]) == [server]


def test_registry_auth_without_credentials_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="registry_auth"):
        build(task(environment=Environment(image="a", registry_auth={"email": "a@b"})))


def test_coscheduler_counts_the_pods_of_a_gang() -> None:
    key = "pod-group.scheduling.sigs.k8s.io"
    made = build(trial(slots=8, num_pods=2), default_scheduler="coscheduler")
    labels = made.job["metadata"]["labels"]
    assert pod_of(made)["schedulerName"] == "coscheduler"
    assert (labels[f"{key}/name"], labels[f"{key}/min-available"]) == (made.name, "2")
    none = build(task(), default_scheduler="coscheduler").job["metadata"]["labels"]
    assert none[f"{key}/min-available"] == "0"
    opted_out = Environment(pod_spec=with_pod(schedulerName="default-scheduler"))
    other = build(trial(environment=opted_out), default_scheduler="coscheduler")
    assert f"{key}/name" not in other.job["metadata"]["labels"]
    set_by_user = Environment(
        pod_spec={"metadata": {"labels": {f"{key}/min-available": "9"}}, "spec": {"schedulerName": "coscheduler"}}
    )
    assert build(trial(environment=set_by_user)).job["metadata"]["labels"][f"{key}/min-available"] == "9"


def test_services_for_proxied_ports_where_they_are_wanted() -> None:
    spec = task(proxy_ports=(ProxyPort(service_id="t", port=8000), ProxyPort(service_id="t:1", port=8001)))
    assert build(spec).services == ()
    services = build(spec, services=True).services
    assert [service["spec"]["ports"][0]["port"] for service in services] == [8000, 8001]
    assert services[0]["spec"]["selector"]["determined"] == "1.x.1"


def test_wheels_are_mounted_or_not_looked_for() -> None:
    assert environment(build(task()))["DET_SKIP_PIP_INSTALL"] == "1"
    made = build(task(), wheels="wheels-1")
    assert "DET_SKIP_PIP_INSTALL" not in environment(made)
    assert {"name": "det-wheels-volume", "mountPath": "/opt/determined/wheels", "readOnly": True} in container(made)[
        "volumeMounts"
    ]


def test_force_pull_image_holds_for_all_containers() -> None:
    made = build(task(environment=Environment(image="i", force_pull_image=True)))
    policies = {container(made, name)["imagePullPolicy"] for name in (MAIN, INIT, FLUENT)}
    assert policies == {"Always"}


def test_builtin_shipper_runs_in_the_task_container() -> None:
    made = build(task(), shipper=ShipperSettings(kind="builtin"))
    assert [each["name"] for each in pod_of(made)["containers"]] == [MAIN]
    command = container(made)["command"]
    at = command.index("/run/determined/capture_and_ship.py")
    assert command[at + 1 : at + 3] == ["--intake", "http://logs:8090"]
    assert command[command.index("--when-full") + 1] == "block"
    files = unpacked(made.config_map["binaryData"]["0.tar.gz"])
    assert {
        f"determined/{name}" for name in ("capture.py", "capture_and_ship.py", "ship.py", "intake_connection.py")
    } <= files.keys()


def test_beside_fluent_bit_the_container_ends_when_everything_is_stored() -> None:
    made = build(task())
    command = container(made)["command"]
    at = command.index("/run/determined/capture_until_stored.py")
    assert command[at + 1 : at + 3] == ["--intake", "http://logs:8090"]
    files = unpacked(made.config_map["binaryData"]["0.tar.gz"])
    assert {
        f"determined/{name}"
        for name in ("capture_until_stored.py", "log_progress.py", "capture.py", "intake_connection.py")
    } <= files.keys()
