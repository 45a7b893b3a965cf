"""The audit log: written with what it is about, read by administrators."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from deploy import cli
from libs.db.audit.search import forget_records
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from tests.integration.api.world import World


def records(admin: httpx.Client, **filters: Any) -> list[dict[str, Any]]:
    reply = admin.get("/api/v1/resolute/audit", params=filters)
    assert reply.status_code == 200, reply.text
    found: list[dict[str, Any]] = reply.json()["records"]
    return found


def test_a_change_is_recorded_with_who_what_and_whence(admin: httpx.Client) -> None:
    made = admin.post(
        "/api/v1/users",
        json={"user": {"username": "audited", "active": True}, "password": "very-secret"},
        headers={"X-Request-Id": "asked-by-a-test"},
    ).json()["user"]
    (record,) = records(admin, requestId="asked-by-a-test")
    assert (record["username"], record["action"]) == ("admin", "POST /api/v1/users")
    assert record["changed"] == [{"entity": "user", "id": str(made["id"]), "what": "created"}]
    assert record["details"]["user.username"] == "audited"
    assert record["details"]["others"] == ["password"]
    assert record["address"] == "127.0.0.1"
    admin.post(f"/api/v1/users/{made['id']}/password", json="even-more-secret").raise_for_status()
    newest = records(admin, entity="user", entityId=made["id"])[0]
    assert (newest["action"], newest["target"]) == (
        "POST /api/v1/users/{userId}/password",
        {"userId": str(made["id"])},
    )
    everything = admin.get("/api/v1/resolute/audit", params={"limit": -1}).text
    assert "secret" not in everything


def test_what_is_refused_is_not_recorded(admin: httpx.Client, user: httpx.Client) -> None:
    before = len(records(admin, limit=-1))
    assert user.post("/api/v1/users", json={"user": {"username": "nobody"}}).status_code == 403
    assert admin.delete("/api/v1/workspaces/999999").status_code == 404
    assert admin.post("/api/v1/users", json={"user": {"username": "x"}}).status_code == 400
    assert admin.delete("/api/v1/templates/no%00such").status_code == 400
    assert len(records(admin, limit=-1)) == before


def test_what_is_not_in_the_database_is_recorded_all_the_same(admin: httpx.Client) -> None:
    body = {"fieldMask": {"paths": ["log.level"]}, "config": {"log": {"level": "LOG_LEVEL_INFO"}}}
    assert admin.patch("/api/v1/master/config", json=body).status_code == 200
    record = records(admin, action="master/config")[0]
    assert record["details"]["config.log.level"] == "LOG_LEVEL_INFO"
    assert record["changed"] == []


def test_a_login_is_recorded_and_a_failed_one_is_not(api: Any, admin: httpx.Client) -> None:
    before = len(records(admin, action="auth/login", limit=-1))
    wrong = httpx.post(f"{api.url}/api/v1/auth/login", json={"username": "admin", "password": "wrong"})
    assert wrong.status_code in (401, 404)
    assert len(records(admin, action="auth/login", limit=-1)) == before
    with api.client("determined"):
        pass
    newest = records(admin, action="auth/login", limit=-1)
    assert (len(newest), newest[0]["username"]) == (before + 1, "determined")


def test_only_administrators_read_it(user: httpx.Client) -> None:
    assert user.get("/api/v1/resolute/audit").status_code == 403


@pytest.mark.parametrize(
    ("filters", "status"),
    [({"since": "yesterday"}, 400), ({"before": "2026-13-01"}, 400), ({"limit": -3}, 400), ({"entity": "a\\"}, 200)],
)
def test_filters_are_checked(admin: httpx.Client, filters: dict[str, Any], status: int) -> None:
    reply = admin.get("/api/v1/resolute/audit", params=filters)
    assert reply.status_code == status
    if status == 400:
        assert next(iter(filters)) in reply.text


def test_it_is_paged_newest_first(admin: httpx.Client) -> None:
    for number in range(3):
        admin.post("/api/v1/workspaces", json={"name": f"audit page {number}"}).raise_for_status()
    names = [each["details"]["name"] for each in records(admin, action="POST /api/v1/workspaces", limit=2)]
    assert names == ["audit page 2", "audit page 1"]
    then = [each["details"]["name"] for each in records(admin, action="POST /api/v1/workspaces", limit=1, offset=2)]
    assert then == ["audit page 0"]


def test_the_command_shows_it(
    world: World, admin: httpx.Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = admin.post("/api/v1/workspaces", json={"name": "for the command"}).json()["workspace"]
    admin.post(f"/api/v1/workspaces/{made['id']}/archive").raise_for_status()
    monkeypatch.setenv("RESOLUTE_DATABASE__URL", world.database_url)
    monkeypatch.setattr("deploy.operations.settings.configure_logging", lambda *_, **__: None)
    with pytest.raises(SystemExit) as ended:
        cli.main(["audit", "--user", "admin", "--entity", "workspace", "--id", str(made["id"])])
    assert ended.value.code == 0
    first, second = capsys.readouterr().out.splitlines()
    assert f"  admin  workspace {made['id']} created" in first
    assert ': name="for the command" ' in first
    assert first.endswith("  (POST /api/v1/workspaces from 127.0.0.1)")
    assert f"  admin  workspace {made['id']} changed" in second
    assert second.endswith(f"  (POST /api/v1/workspaces/{made['id']}/archive from 127.0.0.1)")


async def test_old_records_are_forgotten(world: World, admin: httpx.Client) -> None:
    async with connect_database(DatabaseSettings(url=world.database_url, pool_size=1)) as db:
        assert await forget_records(db, before=datetime.now(UTC) - timedelta(days=1)) == 0
        assert await forget_records(db, before=datetime.now(UTC) + timedelta(minutes=1)) > 0
    assert records(admin, limit=-1) == []
