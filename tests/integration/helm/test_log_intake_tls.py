"""``logs.tls``: new tasks bring their lines over HTTPS, while those of before go on over HTTP."""

from __future__ import annotations

from tests.harness.helm import CHART, run_helm
from tests.integration.helm.conftest import Rendered


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
