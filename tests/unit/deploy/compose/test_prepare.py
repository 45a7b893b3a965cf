"""Secret files: made once, kept, each in the folder of its readers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deploy.compose.prepare import prepare
from deploy.compose.secret_files import files, names
from libs.errors import InvalidRequest

POOLS = ("default", "gpu.a")


@pytest.fixture
def cluster_config(tmp_path: Path) -> Path:
    path = tmp_path / "master.yaml"
    path.write_text("resource_pools: [{pool_name: default}]\n")
    return path


@pytest.fixture
def volumes(tmp_path: Path) -> Path:
    root = tmp_path / "secrets"
    for path in ["kept/passwords.json", *files(dict.fromkeys(names(["default"]), ""), ["default"])]:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
    return root


def content(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_passwords_stay_what_they_are(volumes: Path, cluster_config: Path) -> None:
    prepare(volumes, cluster_config)
    first = content(volumes)
    prepare(volumes, cluster_config)
    assert content(volumes) == first
    made = json.loads(first["kept/passwords.json"])
    assert len(set(made.values())) == len(made)


def test_a_pool_without_a_volume_is_refused_with_the_remedy(volumes: Path, cluster_config: Path) -> None:
    cluster_config.write_text("resource_pools: [{pool_name: default}, {pool_name: gpu}]\n")
    with pytest.raises(InvalidRequest, match=r"no volume at .*launcher-gpu"):
        prepare(volumes, cluster_config)


def test_only_whoever_keeps_the_passwords_sees_them_all(volumes: Path, cluster_config: Path) -> None:
    prepare(volumes, cluster_config)
    assert (volumes / "kept/passwords.json").stat().st_mode & 0o077 == 0


def test_no_folder_but_that_of_the_bus_tells_the_password_of_another() -> None:
    made = files({name: f"<{name}>" for name in names(POOLS)}, POOLS)
    for path, text in made.items():
        folder = path.split("/")[0]
        assert folder == "nats" or text == f"<{folder}>", path


def test_the_bus_knows_every_service_and_launcher_by_its_own_password() -> None:
    passwords = {name: f"<{name}>" for name in names(POOLS)}
    configuration = files(passwords, POOLS)["nats/nats-server.conf"]
    accounts = json.loads(configuration.partition("accounts: ")[2])
    users = {user["user"]: user for user in accounts["RESOLUTE"]["users"]}
    assert users.keys() == {"api", "scheduler", "logs", "supervisor", "launcher-default", "launcher-gpu_a"}
    assert all(user["password"] == f"<{name}>" for name, user in users.items())
    assert "permissions" not in users["api"]
    assert "permissions" in users["launcher-default"]


def test_a_subscriber_with_a_name_has_an_account_and_credentials(volumes: Path, cluster_config: Path) -> None:
    prepare(volumes, cluster_config, ["grafana"])
    made = content(volumes)
    credentials = json.loads(made["nats/subscriber-grafana.json"])
    accounts = json.loads(made["nats/nats-server.conf"].partition("accounts: ")[2])
    (user,) = accounts["SUBSCRIBERS-grafana"]["users"]
    assert (user["user"], user["password"]) == (credentials["user"], credentials["password"])
    assert credentials["password"] != json.loads(made["nats/subscriber.json"])["password"]
