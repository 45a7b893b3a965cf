"""Projects that somebody looked at last."""

from __future__ import annotations

from typing import Any

import httpx


def look(client: httpx.Client, project_id: int, **changes: Any) -> httpx.Response:
    body = {"activityType": "ACTIVITY_TYPE_GET", "entityType": "ENTITY_TYPE_PROJECT", "entityId": project_id}
    return client.post("/api/v1/users/activity", json={**body, **changes})


def recent(client: httpx.Client, **query: int) -> list[int]:
    return [project["id"] for project in client.get("/api/v1/user/projects/activity", params=query).json()["projects"]]


def test_the_latest_comes_first_and_everybody_has_their_own(admin: httpx.Client, user: httpx.Client) -> None:
    workspace = admin.post("/api/v1/workspaces", json={"name": "recent"}).json()["workspace"]["id"]
    made = admin.post(f"/api/v1/workspaces/{workspace}/projects", json={"name": "seen"}).json()["project"]["id"]
    assert recent(user) == []
    for project_id in (1, made, 1):
        assert look(user, project_id).json() == {}
    assert recent(user) == [1, made]
    assert recent(user, limit=1) == [1]
    assert recent(admin) == []
    assert admin.delete(f"/api/v1/projects/{made}").json() == {"completed": True}
    assert recent(user) == [1]


def test_what_is_wrong_is_refused(user: httpx.Client) -> None:
    missing = look(user, 987654)
    assert (missing.status_code, missing.json()["error"]["error"]) == (404, "project '987654' not found")
    for changes in ({"activityType": 0}, {"entityType": "ENTITY_TYPE_UNSPECIFIED"}, {"entityType": "ENTITY_TYPE_SUN"}):
        assert look(user, 1, **changes).status_code == 400
    assert user.get("/api/v1/user/projects/activity", params={"limit": -1}).status_code == 400
    assert user.get("/api/v1/user/projects/activity", headers={"Authorization": "Bearer x"}).status_code == 401
