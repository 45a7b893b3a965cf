from __future__ import annotations

import base64
from typing import Any

import pytest
import yaml

from libs.events.orders import Environment
from services.launcher.backends.kubernetes.manifests.names import FLUENT, INIT, MAIN
from services.launcher.backends.kubernetes.settings import ShipperSettings
from services.launcher.container.paths import LOG_DIR
from services.launcher.container.settings import TaskSettings
from tests.unit.launcher.backends.kubernetes.builders import build, container, pod_of
from tests.unit.launcher.specs import task


def config(**fields: Any) -> dict[str, Any]:
    made = build(task(), **fields)
    loaded: dict[str, Any] = yaml.safe_load(base64.b64decode(made.config_map["binaryData"]["fluent-bit.yaml"]))
    return loaded


def test_on_old_clusters_it_is_a_container_before_the_tasks() -> None:
    pod = pod_of(build(task()))
    assert [each["name"] for each in pod["containers"]] == [FLUENT, MAIN]
    assert "restartPolicy" not in pod["containers"][0]


def test_on_new_clusters_it_is_a_native_sidecar_before_the_init_container() -> None:
    pod = pod_of(build(task(), has_native_sidecars=True))
    assert [each["name"] for each in pod["containers"]] == [MAIN]
    assert [each["name"] for each in pod["initContainers"]] == [FLUENT, INIT]
    assert pod["initContainers"][0]["restartPolicy"] == "Always"


def test_it_reads_what_the_task_writes_and_knows_whose_it_is() -> None:
    made = build(task(), "t.1")
    sidecar = container(made, FLUENT)
    logs = next(mount for mount in sidecar["volumeMounts"] if mount["mountPath"] == LOG_DIR)
    assert logs in container(made)["volumeMounts"]
    entries = {entry["name"]: entry for entry in sidecar["env"]}
    assert entries["DET_LOG_TOKEN"]["valueFrom"]["secretKeyRef"]["key"] == "DET_SESSION_TOKEN"
    assert "DET_SESSION_TOKEN" in made.secrets[0]["data"]
    assert entries["DET_ALLOCATION_ID"]["value"] == "t.1"
    assert entries["POD_NAME"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    assert sidecar["securityContext"] == {"runAsUser": 1000, "runAsGroup": 1001}
    command = container(made)["command"]
    assert command[command.index("--when-full") + 1] == "stored"
    assert command[command.index("--dir") + 1] == LOG_DIR


def test_its_user_can_be_another() -> None:
    made = build(task(), shipper=ShipperSettings(uid=65532, gid=65533))
    assert container(made, FLUENT)["securityContext"] == {"runAsUser": 65532, "runAsGroup": 65533}


def test_configuration_never_gives_up_and_keeps_order_and_bytes() -> None:
    found = config()
    (tail,), (http,) = found["pipeline"]["inputs"], found["pipeline"]["outputs"]
    assert tail["path"] == f"{LOG_DIR}/*.log"
    assert (tail["read_from_head"], tail["refresh_interval"], tail["skip_empty_lines"]) == (True, 1, False)
    assert tail["db.compare_filename"], "an inode is soon that of another file"
    assert (http["host"], http["port"], http["uri"]) == ("logs", 8090, "/ingest/v1/logs")
    assert (http["format"], http["workers"], http["retry_limit"]) == ("msgpack", 1, "no_limits")
    assert found["service"]["scheduler.cap"] < found["service"]["grace"]
    assert (http["log_suppress_interval"], tail["log_suppress_interval"]) == (300, 300)
    assert "tls" not in http
    assert "Authorization Bearer ${DET_LOG_TOKEN}" in http["header"]


def test_tls_is_verified_unless_the_administrator_gave_up_on_it() -> None:
    tasks = TaskSettings(master_url="https://m", log_intake_url="https://logs/base/", master_cert_file="/x")
    (http,) = config(tasks=tasks, master_cert=b"PEM")["pipeline"]["outputs"]
    assert (http["port"], http["uri"]) == (443, "/base/ingest/v1/logs")
    assert (http["tls"], http["tls.verify"], http["tls.verify_hostname"]) == (True, True, True)
    made = build(task(), tasks=tasks, master_cert=b"PEM")
    mounted = {mount["mountPath"] for mount in container(made, FLUENT)["volumeMounts"]}
    assert http["tls.ca_file"] in mounted
    careless = TaskSettings(master_url="https://m", log_intake_url="https://logs", master_cert_file="noverify")
    (http,) = config(tasks=careless)["pipeline"]["outputs"]
    assert http["tls.verify"] is False


def test_without_an_intake_kubectl_has_the_lines() -> None:
    made = build(task(), tasks=TaskSettings(master_url="http://m"))
    assert [each["name"] for each in pod_of(made)["containers"]] == [MAIN]
    assert {"name": "DET_SHIPPER_EMIT_STDOUT_LOGS", "value": "1"} in container(made)["env"]


@pytest.mark.parametrize(("shipper_s", "pod_s"), [(55, 60), (100, 105)])
def test_it_may_deliver_nearly_as_long_as_the_pod_may_end(shipper_s: int, pod_s: int) -> None:
    shipper = ShipperSettings(grace_s=shipper_s)
    assert pod_of(build(task(), shipper=shipper))["terminationGracePeriodSeconds"] == pod_s
    assert config(shipper=shipper)["service"]["grace"] == shipper_s


def test_a_pod_with_a_grace_of_its_own_gives_nearly_all_of_it_to_the_shipper() -> None:
    spec = task(environment=Environment(image="i", pod_spec={"spec": {"terminationGracePeriodSeconds": 600}}))
    made = build(spec)
    loaded = yaml.safe_load(base64.b64decode(made.config_map["binaryData"]["fluent-bit.yaml"]))
    assert loaded["service"]["grace"] == 595


def test_the_version_that_is_taken_ends_when_it_is_asked_to() -> None:
    image, _, version = ShipperSettings().image.partition(":")
    assert image == "fluent/fluent-bit"
    assert tuple(map(int, version.split("."))) >= (4, 2)
