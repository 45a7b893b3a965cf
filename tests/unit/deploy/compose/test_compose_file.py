"""The Compose files: what their services need to start, to be watched and to be restarted, without starting them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
import yaml
from msgspec import Struct

from deploy.compose.prepare import KEPT, ROOT
from deploy.compose.secret_files import BUS_ADDRESS, SERVICES, files, names
from deploy.nats_configuration import launcher_user
from deploy.operations.settings import OperationsSettings
from libs.cluster.loading import read_cluster_config
from libs.events.permissions import SERVICES_INBOX, launcher_inbox
from libs.settings import PREFIX, load
from services.api.settings import ApiSettings
from services.launcher.settings import LauncherSettings
from services.logs.settings import LogsSettings
from services.scheduler.settings import SchedulerSettings

CHECKOUT: Final = Path(__file__).parents[4]
OURS: Final = ("api", "scheduler", "logs", "launcher")
ONE_SHOT: Final = ("prepare", "migrate")
SETTINGS: Final[dict[str, type[Struct]]] = {
    "api": ApiSettings,
    "scheduler": SchedulerSettings,
    "logs": LogsSettings,
    "launcher": LauncherSettings,
    "migrate": OperationsSettings,
}
POOL: Final = "default"
DEFAULT: Final = re.compile(r"\$\{\w+:-([^}]*)\}")


def read(name: str) -> dict[str, Any]:
    """A Compose file with the defaults of its variables."""
    document: dict[str, Any] = yaml.safe_load(DEFAULT.sub(r"\1", (CHECKOUT / name).read_text()))
    return document


COMPOSE: Final = read("docker-compose.yml")
WHEELS: Final = read("docker-compose.wheels.yml")
SERVICE: Final[dict[str, dict[str, Any]]] = COMPOSE["services"]


def volumes(service: str) -> dict[str, str]:
    """What a service mounts, by the path where it does."""
    return {mount.split(":")[1]: mount.split(":")[0] for mount in SERVICE[service]["volumes"]}


@pytest.mark.parametrize("service", [name for name in SERVICE if name not in ONE_SHOT])
def test_what_runs_on_is_watched_and_restarted(service: str) -> None:
    assert SERVICE[service]["restart"] == "unless-stopped"
    assert SERVICE[service]["healthcheck"]["test"][0] == "CMD"


@pytest.mark.parametrize("service", OURS)
def test_a_service_of_ours_is_asked_whether_it_is_ready(service: str) -> None:
    check = SERVICE[service]["healthcheck"]["test"][-1]
    port = SERVICE[service]["environment"]["RESOLUTE_TELEMETRY__STATUS_PORT"]
    assert f"http://127.0.0.1:{port}/readyz" in check


@pytest.mark.parametrize("service", [*OURS, *ONE_SHOT])
def test_a_container_of_ours_has_no_rights_on_the_machine(service: str) -> None:
    assert SERVICE[service]["read_only"] is True
    assert SERVICE[service]["cap_drop"] == ["ALL"]
    assert not {"privileged", "cap_add"} & SERVICE[service].keys()


@pytest.mark.parametrize("service", ["api", "scheduler", "logs"])
def test_services_start_when_the_schema_is_theirs(service: str) -> None:
    assert SERVICE[service]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert SERVICE[service]["environment"]["RESOLUTE_DATABASE__MIGRATE"] == "false"


@pytest.mark.parametrize("service", SETTINGS)
def test_every_variable_is_a_setting(service: str, tmp_path: Path) -> None:
    environment = dict(SERVICE[service]["environment"])
    for name, path in environment.items():
        if name.endswith("_FILE"):
            assert str(Path(path).parent) in volumes(service)
            environment[name] = str(tmp_path / name)
            (tmp_path / name).write_text("secret")
    sections = {name.removeprefix(PREFIX).removesuffix("_FILE").split("__")[0].lower() for name in environment}
    assert sections <= set(SETTINGS[service].__struct_fields__)
    load(SETTINGS[service], None, environment)  # refuses what a section does not have


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_a_user_of_the_bus_by_itself(service: str) -> None:
    environment = SERVICE[service]["environment"]
    assert environment["RESOLUTE_BUS__USER"] == service
    assert environment["RESOLUTE_BUS__URL"] == BUS_ADDRESS
    assert environment["RESOLUTE_BUS__INBOX_PREFIX"] == SERVICES_INBOX
    assert volumes(service)["/etc/resolute/secrets/bus"] == f"{service}-secret"


def test_services_have_the_role_that_the_migration_makes() -> None:
    made = SERVICE["migrate"]["environment"]["RESOLUTE_SERVICES_ROLE__USER"]
    administrator = SERVICE["postgres"]["environment"]["POSTGRES_USER"]
    users = {name: urlsplit(SERVICE[name]["environment"]["RESOLUTE_DATABASE__URL"]).username for name in SERVICES}
    assert users == dict.fromkeys(SERVICES, made)
    assert urlsplit(SERVICE["migrate"]["environment"]["RESOLUTE_DATABASE__URL"]).username == administrator != made


def test_the_launcher_has_the_rights_of_its_pool() -> None:
    environment = SERVICE["launcher"]["environment"]
    pools = read_cluster_config(CHECKOUT / "deploy/compose/master.yaml")[0].resource_pools
    assert [pool.pool_name for pool in pools] == [environment["RESOLUTE_POOL"]] == [POOL]
    assert environment["RESOLUTE_BUS__USER"] == launcher_user(POOL)
    assert environment["RESOLUTE_BUS__INBOX_PREFIX"] == launcher_inbox(POOL)
    assert not {name for name in environment if "DATABASE" in name}


def test_every_secret_has_a_volume_and_only_its_readers_mount_it() -> None:
    made = {str(Path(path).parent) for path in [str(KEPT), *files(dict.fromkeys(names([POOL]), ""), [POOL])]}
    written = {path.removeprefix(f"{ROOT}/"): volume for path, volume in volumes("prepare").items() if path[:2] != "/e"}
    assert written.keys() == made
    readers = {
        volume: {name for name in SERVICE if name != "prepare" and volume in volumes(name).values()}
        for volume in written.values()
    }
    assert readers == {
        "passwords": set(),
        "database-secret": {"postgres", "migrate"},
        "database-services-secret": {"migrate", "api", "scheduler", "logs"},
        "admin-secret": {"api"},
        "nats-configuration": {"nats"},
        "api-secret": {"api"},
        "scheduler-secret": {"scheduler"},
        "logs-secret": {"logs"},
        "launcher-secret": {"launcher"},
    }


@pytest.mark.parametrize("service", SERVICE)
def test_no_password_is_in_a_command_or_a_variable(service: str) -> None:
    said = [*SERVICE[service].get("command", []), *SERVICE[service].get("healthcheck", {}).get("test", [])]
    assert not [word for word in said if re.search("password|secret", word, re.IGNORECASE)]
    for name, value in SERVICE[service].get("environment", {}).items():
        assert "PASSWORD" not in name or name.endswith("_FILE"), name
        assert not re.search(r"://[^/@]*:[^/@]*@", str(value)), name


def test_images_are_built_from_stages_that_exist() -> None:
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", (CHECKOUT / "deploy/images/Dockerfile").read_text(), re.MULTILINE))
    built = [*SERVICE.values(), *WHEELS["services"].values()]
    assert {each["build"]["target"] for each in built if "build" in each} <= stages


def test_the_wheels_stand_in_for_every_image_of_others() -> None:
    others = {name for name, each in SERVICE.items() if not each["image"].startswith("resolute-")}
    assert WHEELS["services"].keys() == others


def test_only_this_machine_reaches_the_api_unless_somebody_says_otherwise() -> None:
    assert {name: each["ports"] for name, each in SERVICE.items() if "ports" in each} == {
        "api": ["127.0.0.1:8080:8080"]
    }
