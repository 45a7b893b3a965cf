"""The api over HTTPS."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from cryptography.x509 import load_pem_x509_certificate

from libs.events.observations import ObservedPod
from tests.harness import ServiceProcess
from tests.harness.api import ApiProcess
from tests.harness.certificates import Authority, Pair, self_signed
from tests.harness.det import Det
from tests.harness.waiting import wait_until
from tests.integration.api.world import CLUSTER, Rows, World


def settings_with(directory: Path, pair: Pair) -> dict[str, str]:
    """The settings of an api whose cluster configuration names the pair."""
    cluster = {**yaml.safe_load(CLUSTER), "security": {"tls": {"cert": str(pair.cert), "key": str(pair.key)}}}
    path = directory / "cluster.yaml"
    path.write_text(yaml.safe_dump(cluster))
    return {"cluster_config": str(path)}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def secure(world: World, pair: Pair) -> Iterator[ApiProcess]:
    with ApiProcess(
        world.directory / "secure",
        database_url=world.database_url,
        bus_url=world.bus_url,
        settings=settings_with(pair.cert.parent, pair),
        certificate=pair.cert,
    ) as api:
        yield api


def test_requests_and_streams_go_over_https(secure: ApiProcess) -> None:
    assert secure.url.startswith("https://")
    with secure.client() as client:
        assert client.get("/api/v1/me").json()["user"]["username"] == "admin"
        with client.stream("GET", "/api/v1/master/logs?offset=0") as reply:
            assert any("http.listening" in line for line in reply.iter_lines())
        shown = client.get("/api/v1/master/config").json()["config"]["security"]["tls"]
        assert shown["cert"].endswith("cert.pem")


def test_who_does_not_trust_the_certificate_does_not_talk_and_is_named(secure: ApiProcess, world: World) -> None:
    rows = Rows(world)
    _, job = rows.task()
    pod = ObservedPod(name="pod", state="RUNNING", addresses=("127.0.0.1",))
    allocation = rows.allocation(job_id=job, pods=(pod,))
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(f"{secure.url}/info")
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{secure.url.replace('https', 'http')}/info")
    wait_until(lambda: "handshake.failed" in secure.process.log(), what="it says so")
    (line,) = (json.loads(line) for line in secure.process.log().splitlines() if "handshake.failed" in line)
    assert (line["address"], line["reason"], line["allocation"]) == ("127.0.0.1", "untrusted", allocation)


def test_the_client_asks_whether_to_trust_an_unknown_certificate_once(secure: ApiProcess, tmp_path: Path) -> None:
    det = Det(url=secure.url, home=tmp_path / "home")
    assert "admin" in det("-u", "admin", "user", "whoami", answers=["y", ""]).out
    assert "admin" in det("-u", "admin", "user", "whoami", answers=[""]).out


def test_the_client_is_given_a_certificate(secure: ApiProcess, pair: Pair, tmp_path: Path) -> None:
    det = Det(url=secure.url, home=tmp_path / "home", env={"DET_MASTER_CERT_FILE": str(pair.cert)})
    assert json.loads(det("master", "info", "--json").out)["clusterName"] == "testing"


def test_a_renewed_certificate_is_served_to_who_comes_and_cuts_nobody(world: World, tmp_path: Path) -> None:
    authority = Authority()
    ca = tmp_path / "ca.crt"
    ca.write_bytes(authority.pem)
    pair = authority.issue(tmp_path)
    first = pair.serial
    with ApiProcess(
        tmp_path,
        database_url=world.database_url,
        bus_url=world.bus_url,
        settings=settings_with(tmp_path, pair),
        certificate=ca,
    ) as api:
        assert served_by(api) == first
        with api.client() as client, client.stream("GET", "/api/v1/master/logs?follow=true") as reply:
            lines = reply.iter_lines()
            assert "api" in next(lines)
            authority.issue(tmp_path)
            wait_until(lambda: served_by(api) == pair.serial, what="the new certificate is served")
            assert pair.serial != first
            assert api.token()
            # It began under the certificate before.
            assert any("certificate.renewed" in line for line in lines)
        # A key that belongs to another certificate is never served.
        renewed = pair.serial
        stranger = tmp_path / "stranger"
        stranger.mkdir()
        self_signed(stranger).key.replace(pair.key)
        wait_until(lambda: "certificate.not_renewed" in api.process.log(), what="it says so")
        assert served_by(api) == renewed
        assert api.token()


def served_by(api: ApiProcess) -> int:
    """The serial number of the certificate that a new connection is shown."""
    host, _, port = api.url.removeprefix("https://").rpartition(":")
    return load_pem_x509_certificate(ssl.get_server_certificate((host, int(port))).encode()).serial_number


def test_a_missing_key_is_said_at_the_start(pair: Pair, tmp_path: Path) -> None:
    settings = settings_with(tmp_path, pair._replace(key=tmp_path / "missing.pem"))
    path = tmp_path / "api.yaml"
    path.write_text(json.dumps(settings))
    process = ServiceProcess("services.api.main", "--settings", str(path), log_path=tmp_path / "log")
    process.start()
    wait_until(lambda: not process.is_running, what="it gives up")
    assert process.returncode == 1
    assert "missing.pem cannot be read: No such file or directory" in process.log()
