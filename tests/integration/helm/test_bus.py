"""The bus of the chart lets everybody do what the code says, and nothing else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from deploy.bus_permissions import FILE, bus_file
from deploy.local.servers.nats import find_nats_server
from deploy.nats_configuration import allowed
from libs.events.accounts import CONTROL_PLANE, SUBSCRIBERS, accounts
from libs.events.permissions import launcher_permissions, subscriber_permissions
from libs.events.subjects import token
from tests.harness.helm import Release
from tests.integration.helm.conftest import Rendered


def test_the_chart_has_the_permissions_of_the_code() -> None:
    assert FILE.read_text() == bus_file(), "run python -m deploy.bus_permissions, and commit what it writes"


def nats_conf(release: Release) -> str:
    return release.secret("resolute-nats-config", "nats.conf")


@pytest.mark.parametrize(
    ("values", "pools"),
    [("defaults", ["default"]), ("two_pools", ["A100", "cpu_only"]), ("remote_pool", ["default", "far.away"])],
)
def test_accounts_and_users_are_those_of_the_code(values: str, pools: list[str], rendered: Rendered) -> None:
    release = rendered(values)
    _, _, block = nats_conf(release).partition("accounts: ")
    found = json.loads(block)
    expected = accounts(control_plane=[], subscribers=[])
    users = found[CONTROL_PLANE].pop("users")
    (subscriber,) = found[SUBSCRIBERS].pop("users")
    for account in expected.values():
        del account["users"]
    assert found == json.loads(json.dumps(expected))
    assert [user["user"] for user in users] == ["services", *(f"launcher-{token(pool)}" for pool in pools)]
    assert "permissions" not in users[0]
    for user, pool in zip(users[1:], pools, strict=True):
        assert user["permissions"] == json.loads(json.dumps(allowed(launcher_permissions(pool))))
    assert subscriber["permissions"] == json.loads(json.dumps(allowed(subscriber_permissions())))
    assert len({user["password"] for user in [*users, subscriber]}) == len(users) + 1


@pytest.mark.parametrize("values", ["defaults", "two_pools", "three_nats"])
def test_the_server_takes_the_configuration(values: str, rendered: Rendered, tmp_path: Path) -> None:
    path = tmp_path / "nats.conf"
    # Certificates are looked for where the pod has them.
    lines = [line for line in nats_conf(rendered(values)).splitlines() if not line.strip().startswith("tls {")]
    path.write_text("\n".join(lines))
    done = subprocess.run(
        [find_nats_server(), "-c", path, "-t"], env={"POD_NAME": "nats-0"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_password_is_in_no_config_map_and_in_no_command_line(any_values: str, rendered: Rendered) -> None:
    release = rendered(any_values)
    passwords = {
        release.secret("resolute-generated", key)
        for key in release.get("Secret", "resolute-generated")["data"]
        if key.startswith("bus-") or key.endswith("password")
    } - {""}
    shown = [json.dumps(found) for found in release.manifests if found["kind"] != "Secret"]
    assert [password for password in passwords for manifest in shown if password in manifest] == []
