"""``logs.tls``: new tasks bring their lines over HTTPS, while those of before go on over HTTP."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.answering_cluster import Manifest, answering_cluster
from tests.harness.certificates import Authority
from tests.harness.helm import CHART, run_helm
from tests.integration.helm.conftest import Rendered
from tests.integration.helm.test_of_a_cluster import kept, named
from tests.integration.helm.test_of_a_cluster import rendered as rendered_on

API_NAME = "determined-master-service-rel.ml.svc.cluster.local"
OPTIONS = ("--set", "maxSlotsPerPod=4,tlsSecret=certificate")


def certificate(folder: Path, *names: str) -> Manifest:
    pair = Authority().issue(folder, names=names, addresses=())
    return named("Secret", "certificate", data={"tls.crt": base64.b64encode(pair.cert.read_bytes()).decode()})


def service(*ports: int) -> Manifest:
    return named("Service", "resolute-logs-rel", spec={"ports": [{"port": port} for port in ports]})


def intake_of(objects: list[Manifest], *options: str) -> str:
    release = rendered_on(CHART, objects, *OPTIONS, *options)
    return release.environment("Deployment", "resolute-launcher-default")["RESOLUTE_TASKS__LOG_INTAKE_URL"]


def test_the_intake_has_the_certificate_of_the_api_and_is_verified_by_its_name(rendered: Rendered) -> None:
    release = rendered("tls_logs")
    launcher = release.environment("Deployment", "resolute-launcher-default")
    assert launcher["RESOLUTE_TASKS__LOG_INTAKE_URL"] == "https://resolute-logs-rel.ml.svc.cluster.local:8443"
    assert launcher["RESOLUTE_TASKS__MASTER_CERT_NAME"] == "determined-master-service-rel.ml.svc.cluster.local"
    assert launcher["RESOLUTE_KUBERNETES__TASK_NETWORK__SERVICE_PORTS"] == "[8081, 8443]"
    intake = release.environment("Deployment", "resolute-logs")
    assert intake["RESOLUTE_INTAKE__TLS__CERT"] == "/etc/resolute/secrets/tls/tls.crt"
    pod = release.get("Deployment", "resolute-logs")["spec"]["template"]["spec"]
    assert {"name": "tls", "secret": {"secretName": "determined-tls"}} in pod["volumes"]
    assert "/etc/resolute/secrets/tls" in [mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]]
    assert [port["port"] for port in release.get("Service", "resolute-logs")["spec"]["ports"]] == [8081, 8443]
    ingress = release.get("NetworkPolicy", "resolute-logs")["spec"]["ingress"]
    assert {"ports": [{"port": 8081}, {"port": 8443}]} in ingress


def test_without_it_nothing_changes_and_without_a_certificate_it_is_refused(rendered: Rendered) -> None:
    release = rendered("tls")
    launcher = release.environment("Deployment", "resolute-launcher-default")
    assert launcher["RESOLUTE_TASKS__LOG_INTAKE_URL"] == "http://resolute-logs-rel.ml.svc.cluster.local:8081"
    assert len(release.get("Service", "resolute-logs")["spec"]["ports"]) == 1
    options = ("--set", "maxSlotsPerPod=1,logs.tls=true,tasks.namespace=ml")
    assert "logs.tls needs tlsSecret" in run_helm("template", "rel", str(CHART), *options).stderr


def test_a_new_release_has_it_and_one_that_is_there_goes_on_as_it_is() -> None:
    encrypted = "https://resolute-logs-rel.ml.svc.cluster.local:8443"
    plain = "http://resolute-logs-rel.ml.svc.cluster.local:8081"
    assert intake_of([]) == encrypted
    assert intake_of([kept("First-Pass1"), service(8081)], "--is-upgrade") == plain
    assert intake_of([kept("First-Pass1"), service(8081, 8443)], "--is-upgrade") == encrypted
    assert intake_of([], "--set", "logs.tls=false") == plain
    assert intake_of([kept("First-Pass1"), service(8081)], "--is-upgrade", "--set", "logs.tls=true") == encrypted
    assert intake_of([], "--set", "logs.url=https://logs.example.com") == "https://logs.example.com"


def test_the_notes_of_an_upgrade_say_that_lines_come_in_the_clear(chart_with_notes: Path) -> None:
    def notes(*options: str) -> str:
        release = rendered_on(
            chart_with_notes, [kept("First-Pass1"), service(8081)], *OPTIONS, "--is-upgrade", *options
        )
        return str(release.get("Notes", "notes")["text"])

    assert "--set logs.tls=true" in notes()
    assert "logs.tls" not in notes("--set", "logs.tls=false")
    assert "logs.tls" not in notes("--set", "logs.tls=true")


@pytest.mark.parametrize(
    ("names", "options"),
    [
        ((API_NAME,), ()),
        (("det.example.com", API_NAME.upper()), ()),
        (("*.ml.svc.cluster.local",), ()),
        (("det.example.com",), ("--set", "tls.certificateName=det.example.com")),
        (("det.example.com",), ("--set", "logs.tls=false")),
    ],
)
def test_a_certificate_for_the_name_that_tasks_look_for_is_taken(
    names: tuple[str, ...], options: tuple[str, ...], tmp_path: Path
) -> None:
    assert intake_of([certificate(tmp_path, *names)], *options)


def test_a_certificate_that_cannot_be_read_is_taken() -> None:
    for content in ("", "-----BEGIN CERTIFICATE-----\nno base64=\n-----END CERTIFICATE-----\n"):
        data = {"tls.crt": base64.b64encode(content.encode()).decode()}
        assert intake_of([named("Secret", "certificate", data=data)])


@pytest.mark.parametrize("name", ["det.example.com", f"other-{API_NAME}", "*.cluster.local", f"{API_NAME}.example.com"])
def test_a_certificate_without_it_is_refused_while_rendering(name: str, tmp_path: Path) -> None:
    with answering_cluster([certificate(tmp_path, name)]) as url:
        done = run_helm(
            "template", "rel", str(CHART), "-n", "ml", "--dry-run=server", "--kube-apiserver", url, *OPTIONS
        )
    assert f"the certificate in Secret certificate is not for {API_NAME}, which tasks look for" in done.stderr


def test_doctor_is_told_by_the_pods_of_the_api_what_tasks_look_for(rendered: Rendered) -> None:
    def told(name: str) -> dict[str, Any]:
        environment = rendered(name).environment("Deployment", "determined-master-deployment")
        return {key.rpartition("__")[2]: value for key, value in environment.items() if "LOG_INTAKE" in key}

    logs = told("tls_logs")
    assert logs["URL"] == "https://resolute-logs-rel.ml.svc.cluster.local:8443"
    assert json.loads(logs["NAMES"]) == [API_NAME]
    assert (logs["CA_FILE"], logs["CERT_FILE"]) == (
        "/etc/resolute/secrets/tls/ca.crt",
        "/etc/resolute/secrets/tls/tls.crt",
    )
    assert told("tls")["URL"] == "http://resolute-logs-rel.ml.svc.cluster.local:8081"
    assert told("defaults") == {}
    egress = rendered("tls_logs").get("NetworkPolicy", "resolute-master")["spec"]["egress"]
    assert [rule for rule in egress if rule.get("ports") == [{"port": 8443}]]
