"""The bus of the chart lets everybody do what the code says, and nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from deploy.bus_permissions import FILE, bus_file
from deploy.cli import _parser
from deploy.local.servers.nats import find_nats_server
from deploy.nats_configuration import allowed, subscriber_user
from libs.events.accounts import CONTROL_PLANE, accounts, subscriber_account
from libs.events.permissions import launcher_permissions, subscriber_permissions
from libs.events.subjects import token
from tests.harness.helm import CHART, Release, render
from tests.integration.helm.conftest import BESIDE, VALUES, Rendered


def test_the_chart_has_the_permissions_of_the_code() -> None:
    assert FILE.read_text() == bus_file(), "run python -m deploy.bus_permissions, and commit what it writes"


def nats_conf(release: Release) -> str:
    return release.secret("resolute-nats-config", "nats.conf")


@pytest.mark.parametrize(
    ("values", "pools", "named"),
    [
        ("defaults", ["default"], []),
        ("two_pools", ["A100", "cpu_only"], []),
        ("remote_pool", ["default", "far.away"], []),
        ("subscribers", ["default"], ["grafana", "alerts-2"]),
    ],
)
def test_accounts_and_users_are_those_of_the_code(
    values: str, pools: list[str], named: list[str], rendered: Rendered
) -> None:
    release = rendered(values)
    _, _, block = nats_conf(release).partition("accounts: ")
    found = json.loads(block)
    expected = accounts(control_plane=[], subscribers={name: [] for name in (None, *named)})
    users = found[CONTROL_PLANE].pop("users")
    names = [None, *named]
    subscribers = [user for name in names for user in found[subscriber_account(name)].pop("users")]
    for account in expected.values():
        del account["users"]
    assert found == json.loads(json.dumps(expected))
    assert [user["user"] for user in users] == ["services", *(f"launcher-{token(pool)}" for pool in pools)]
    assert "permissions" not in users[0]
    for user, pool in zip(users[1:], pools, strict=True):
        assert user["permissions"] == json.loads(json.dumps(allowed(launcher_permissions(pool))))
    assert [user["user"] for user in subscribers] == [subscriber_user(name) for name in names]
    for user in subscribers:
        assert user["permissions"] == json.loads(json.dumps(allowed(subscriber_permissions())))
    assert len({user["password"] for user in [*users, *subscribers]}) == len(users) + len(subscribers)


@pytest.mark.parametrize("values", ["defaults", "two_pools", "three_nats", "subscribers"])
def test_the_server_takes_the_configuration(values: str, rendered: Rendered, tmp_path: Path) -> None:
    path = tmp_path / "nats.conf"
    # Certificates are looked for where the pod has them.
    lines = [line for line in nats_conf(rendered(values)).splitlines() if not line.strip().startswith("tls {")]
    path.write_text("\n".join(lines))
    done = subprocess.run(
        [find_nats_server(), "-c", path, "-t"], env={"POD_NAME": "nats-0"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_servers_of_a_cluster_are_prepared_by_the_command_line(rendered: Rendered) -> None:
    template = rendered("three_nats").get("StatefulSet", "resolute-nats")["spec"]["template"]["spec"]
    program, prepare = template["initContainers"]
    assert program["image"] == template["containers"][0]["image"]
    _, *command = prepare["command"]
    arguments = _parser("deploy.bus_servers.command").parse_args(command)
    assert [name for name, _ in arguments.servers] == [f"resolute-nats-rel-{number}" for number in range(3)]
    assert arguments.servers[2][1] == "http://resolute-nats-rel-2.resolute-nats-headless-rel.ml.svc.cluster.local:8222"
    alone = rendered("defaults").get("StatefulSet", "resolute-nats")["spec"]["template"]["spec"]
    assert "initContainers" not in alone


def test_what_three_servers_have_is_left_to_the_first_before_the_others_go(tmp_path: Path) -> None:
    """Only an upgrade of a cluster that has three makes the Job: its answer is put into the template here."""
    chart = shutil.copytree(CHART, tmp_path / "chart")
    template = chart / "templates" / "bus" / "shrink.yaml"
    asks = re.compile(r"\(lookup [^)]*\)\.spec")
    jobs = {}
    for replicas in (1, 3):
        template.write_text(
            asks.sub(f'(dict "replicas" {replicas})', (CHART / "templates/bus/shrink.yaml").read_text())
        )
        jobs[replicas] = render(VALUES / "defaults.yaml", "--is-upgrade", *BESIDE, chart=chart).find(
            "Job", "resolute-shrink"
        )
    assert jobs[1] is None
    assert jobs[3] is not None
    container = jobs[3]["spec"]["template"]["spec"]["containers"][0]
    arguments = _parser("deploy.bus_servers.command").parse_args(container["command"][1:])
    assert arguments.to == "resolute-nats-rel-0"
    url = next(each["value"] for each in container["env"] if each["name"] == "RESOLUTE_BUS__URL")
    assert url.startswith(f"nats://{arguments.to}.")


def test_a_password_is_in_no_config_map_and_in_no_command_line(any_values: str, rendered: Rendered) -> None:
    release = rendered(any_values)
    passwords = {
        release.secret("resolute-generated", key)
        for key in release.get("Secret", "resolute-generated")["data"]
        if key.startswith("bus-") or key.endswith("password")
    } - {""}
    shown = [json.dumps(found) for found in release.manifests if found["kind"] != "Secret"]
    assert [password for password in passwords for manifest in shown if password in manifest] == []
