"""Which credentials of the database the chart gives to whom."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

import pytest

from tests.harness.helm import Release, render
from tests.integration.helm.conftest import BESIDE, VALUES, Rendered

MIGRATION = {"RESOLUTE_DATABASE__URL": "database-url", "RESOLUTE_SERVICES_ROLE__PASSWORD": "services-database-password"}
FORMER = "RESOLUTE_FORMER_DATABASE_URL"
SERVICES = {"RESOLUTE_DATABASE__URL": "services-database-url"}


def keys_of_the_database(release: Release) -> Iterator[tuple[str, dict[str, str]]]:
    """Every container that has credentials of the database: its name, and the key of the Secret by variable."""
    for _, template in release.pods():
        spec = template["spec"]
        for container in [*spec.get("initContainers", ()), *spec["containers"]]:
            named = {
                each["name"]: each["valueFrom"]["secretKeyRef"]["key"]
                for each in container.get("env", ())
                if "secretKeyRef" in each.get("valueFrom", {})
            }
            named.pop(FORMER, None)
            if keys := {name: key for name, key in named.items() if "database" in key}:
                yield container["name"].removesuffix(f"-{release.name}"), keys


@pytest.mark.parametrize("values", ["defaults", "database_services_user"])
def test_services_have_a_role_of_their_own_and_no_password_of_the_administrator(
    values: str, rendered: Rendered
) -> None:
    found = dict(keys_of_the_database(rendered(values)))
    found.pop("determined-db", None)
    assert found == {
        **dict.fromkeys(("determined-master", "scheduler", "logs", "smoke-test"), SERVICES),
        **dict.fromkeys(("database", "migration"), MIGRATION),
    }


@pytest.mark.parametrize("values", ["external_database", "database_one_user"])
def test_services_without_a_role_of_their_own_connect_as_the_user_of_the_values(
    values: str, rendered: Rendered
) -> None:
    release = rendered(values)
    found = dict(keys_of_the_database(release))
    found.pop("determined-db", None)
    names = ("determined-master", "scheduler", "logs", "migration", "smoke-test")
    assert found == {name: {"RESOLUTE_DATABASE__URL": "database-url"} for name in names}
    assert "services-database-url" not in release.get("Secret", "resolute-generated")["data"]


def test_the_job_before_an_upgrade_and_the_services_have_the_same_password(rendered: Rendered) -> None:
    """Also where the cluster cannot be asked, so that the next rendering comes to the same."""
    release = rendered("database_services_user")
    url = urlsplit(release.secret("resolute-generated", "services-database-url"))
    assert unquote(url.username or "") == "det services"
    password = unquote(url.password or "")
    assert len(password) == 20
    assert password != release.secret("resolute-generated", "database-password")
    again = render(VALUES / "database_services_user.yaml", *BESIDE)
    assert again.secret("resolute-generated", "services-database-password") == password
    for secret in ("resolute-generated", "resolute-migration"):
        assert release.secret(secret, "services-database-password") == password


def test_a_changed_password_of_the_own_database_is_changed_there_first(rendered: Rendered) -> None:
    """Before an upgrade and before a rollback, by the URL that the live Secret has; pods that have it are replaced."""
    release = rendered("database")
    for name, action, hook in (
        ("resolute-migration", "upgrade", "pre-upgrade"),
        ("resolute-password", "password", "pre-rollback"),
    ):
        job = release.get("Job", name)
        assert job["metadata"]["annotations"]["helm.sh/hook"] == hook
        container = job["spec"]["template"]["spec"]["containers"][0]
        assert container["command"] == ["resolute", "db", action]
        former = {"name": "resolute-generated-rel", "key": "database-url", "optional": True}
        assert {
            "name": FORMER,
            "valueFrom": {"secretKeyRef": former},
        } in container["env"]
    assert release.get("Secret", "resolute-migration")["metadata"]["annotations"]["helm.sh/hook"] == (
        "pre-upgrade,pre-rollback"
    )
    changed = render(VALUES / "database.yaml", *BESIDE, "--set", "db.password=Another1")
    for name in ("determined-master-deployment", "resolute-scheduler", "resolute-logs"):
        before, after = (
            each.get("Deployment", name)["spec"]["template"]["metadata"]["annotations"] for each in (release, changed)
        )
        assert before["checksum/config"] != after["checksum/config"]
    for values in ("defaults", "external_database"):
        assert rendered(values).find("Job", "resolute-password") is None
    assert "FORMER" not in str(rendered("external_database").get("Job", "resolute-migration"))
