"""What the chart tells the services is what they read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import Struct, structs

from deploy.operations.settings import OperationsSettings
from libs.cluster.loading import read_cluster_config
from libs.events.permissions import SERVICES_INBOX, launcher_inbox
from libs.events.subjects import token
from libs.settings import PREFIX, load
from services.api.settings import ApiSettings
from services.launcher.settings import LauncherSettings
from services.logs.settings import LogsSettings
from services.scheduler.settings import SchedulerSettings
from tests.harness.helm import Release
from tests.integration.helm.conftest import Rendered

SERVICES: Final[dict[str, type[Struct]]] = {
    "determined-master-deployment": ApiSettings,
    "resolute-scheduler": SchedulerSettings,
    "resolute-logs": LogsSettings,
}


def environments(release: Release) -> Iterator[tuple[type[Struct], dict[str, str]]]:
    """The settings of every service that is installed, and its variables."""
    for kind, name in release.by_name:
        service = name.removesuffix(f"-{release.name}")
        if kind == "Deployment" and service in SERVICES:
            yield SERVICES[service], release.environment(kind, name)
        elif kind == "Deployment" and service.startswith("resolute-launcher-"):
            yield LauncherSettings, release.environment(kind, name)


def test_every_variable_is_a_setting_of_its_service(any_values: str, rendered: Rendered) -> None:
    found = list(environments(rendered(any_values)))
    assert found
    for settings_type, environ in found:
        readers: list[type[Struct]] = [settings_type]
        if settings_type is ApiSettings:
            readers.append(OperationsSettings)  # `resolute doctor` runs in its pods
        for reader in readers:
            load(reader, None, environ)
        sections = {field.name for reader in readers for field in structs.fields(reader)}
        used = {name.removeprefix(PREFIX).lower().split("__")[0] for name in environ if name.startswith(PREFIX)}
        assert used - sections == set()


def test_services_take_the_cluster_configuration_as_it_is_written(
    any_values: str, rendered: Rendered, tmp_path: Path
) -> None:
    release = rendered(any_values)
    files = ["resolute-launcher-config"]
    if any_values != "launcher_only":
        files.append("determined-master-config")
    for name in files:
        for key, text in release.get("Secret", name)["stringData"].items():
            path = tmp_path / key
            path.write_text(text)
            config, warnings = read_cluster_config(path)
            assert warnings == ()
            assert config.resource_manager.is_kubernetes


@pytest.fixture
def launchers(rendered: Rendered) -> dict[str, LauncherSettings]:
    """Pool -> settings of its launcher, of an installation with two pools."""
    found = [load(kind, None, environ) for kind, environ in environments(rendered("two_pools"))]
    return {each.pool: each for each in found if isinstance(each, LauncherSettings)}


def test_each_pool_has_a_launcher_with_a_user_of_its_own(launchers: dict[str, LauncherSettings]) -> None:
    assert set(launchers) == {"A100", "cpu_only"}
    for pool, settings in launchers.items():
        assert settings.backend == "kubernetes"
        assert settings.bus.user == f"launcher-{token(pool)}"
        assert settings.bus.inbox_prefix == launcher_inbox(pool)
        assert not settings.bus.manage_streams
        assert settings.kubernetes.cluster_id
    assert len({settings.bus.password for settings in launchers.values()}) == 2


def test_services_share_an_inbox_that_launchers_cannot_read(rendered: Rendered) -> None:
    for kind, environ in environments(rendered("two_pools")):
        settings: Any = load(kind, None, environ)
        if kind is not LauncherSettings:
            assert settings.bus.inbox_prefix == SERVICES_INBOX
            assert settings.bus.copy_events


def test_the_api_knows_its_namespace_and_the_id_that_launchers_have(rendered: Rendered) -> None:
    release = rendered("two_pools")
    environ = release.environment("Deployment", "determined-master-deployment")
    assert environ["RESOLUTE_RELEASE_NAMESPACE"] == "ml"
    assert environ["RESOLUTE_CLUSTER_ID"] == release.secret("resolute-generated", "cluster-id")


def test_launchers_do_not_learn_what_opens_the_storage(rendered: Rendered) -> None:
    release = rendered("storage_s3")
    assert "access_key" in release.secret("determined-master-config", "master.yaml")
    assert "checkpoint_storage" not in release.secret("resolute-launcher-config", "master.yaml")
    pod = release.get("Deployment", "resolute-launcher-default")["spec"]["template"]["spec"]
    assert "determined-master-config-rel" not in str(pod["volumes"])
