"""Webhooks over REST (docs/reference/platform.md 11; docs/reference/logs.md 8)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from sqlalchemy import select, text

from libs.db.engine import Connection
from libs.db.tables.webhooks import webhook_deliveries
from libs.ids import new_uuid
from libs.webhooks.signatures import SIGNATURE, TIMESTAMP, signature
from tests.builders import insert_experiment, insert_workspace
from tests.harness.api import ApiProcess
from tests.integration.api.world import CLUSTER, World

ALLOWING = CLUSTER + "webhooks: {signing_key: k, allowed_networks: [127.0.0.0/8]}\n"


@pytest.fixture(scope="module")
def api(world: World) -> Iterator[ApiProcess]:
    path = world.directory / "allowing.yaml"
    path.write_text(ALLOWING)
    with world.api("allowing", cluster_config=str(path)) as api:
        yield api


class Receiver(ThreadingHTTPServer):
    """Keeps what it gets, and answers with ``status``."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.location = ""
        self.received: list[tuple[dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((dict(self.headers), body))
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def webhook(**changes: Any) -> dict[str, Any]:
    body = {
        "name": new_uuid(),
        "url": "https://example.com/hook",
        "webhookType": "WEBHOOK_TYPE_DEFAULT",
        "mode": "WEBHOOK_MODE_WORKSPACE",
        "triggers": [{"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "COMPLETED"}}],
    }
    return {**body, **changes}


def make(client: httpx.Client, **changes: Any) -> dict[str, Any]:
    answer = client.post("/api/v1/webhooks", json=webhook(**changes))
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()["webhook"]
    return made


def test_webhook_is_made_listed_changed_and_deleted(admin: httpx.Client) -> None:
    made = make(admin)
    assert made in admin.get("/api/v1/webhooks").json()["webhooks"]
    assert made["workspaceId"] == 0
    [trigger] = made["triggers"]
    assert trigger["webhookId"] == made["id"]
    assert trigger["condition"] == {"state": "COMPLETED"}
    answer = admin.patch(f"/api/v1/webhooks/{made['id']}", json={"url": "https://example.org/"})
    assert answer.json() == {}
    [changed] = [each for each in admin.get("/api/v1/webhooks").json()["webhooks"] if each["id"] == made["id"]]
    assert changed == {**made, "url": "https://example.org/"}
    assert admin.delete(f"/api/v1/webhooks/{made['id']}").json() == {}
    for method, path in (("PATCH", ""), ("DELETE", ""), ("POST", "/test")):
        body = {"url": "https://example.org/"} if method == "PATCH" else None
        assert admin.request(method, f"/api/v1/webhooks/{made['id']}{path}", json=body).status_code == 404


def trigger(kind: str, condition: Any = None) -> dict[str, Any]:
    return {"triggers": [{"triggerType": f"TRIGGER_TYPE_{kind}", "condition": condition}]}


REFUSED = [
    ({"triggers": []}, "at least one trigger required"),
    ({"url": "nonsense"}, "valid url required"),
    ({"url": "file:///etc/passwd"}, "valid url required"),
    ({"url": "http://169.254.169.254/latest"}, "169.254.169.254 is a private address"),
    ({"name": "n" * 257}, "name: must not be longer than 256 characters"),
    ({"webhookType": "WEBHOOK_TYPE_UNSPECIFIED"}, "webhookType"),
    (trigger("UNSPECIFIED"), "triggerType is required"),
    (trigger("TASK_LOG", {"regex": "a", "b": "c"}), "webhook task log condition must have one key got"),
    (trigger("TASK_LOG", {"pattern": "a"}), "must have key 'regex'"),
    (trigger("TASK_LOG", {"regex": 5}), "as string"),
    (trigger("TASK_LOG", {"regex": "("}), "does not compile"),
    (trigger("TASK_LOG"), "webhook task log condition must have one key got"),
    (trigger("EXPERIMENT_STATE_CHANGE", {"state": "DONE"}), "state"),
    (trigger("EXPERIMENT_STATE_CHANGE", {"state": ["COMPLETED"]}), "state"),
    (trigger("METRIC_THRESHOLD_EXCEEDED", {"metric": "loss"}), "threshold"),
    (trigger("METRIC_THRESHOLD_EXCEEDED", {"metric": "loss", "threshold": True}), "threshold"),
    (trigger("CUSTOM", {}), "WEBHOOK_MODE_SPECIFIC"),
    ({"mode": "WEBHOOK_MODE_SPECIFIC", **trigger("CUSTOM", {"a": 1})}, "must not have a condition"),
]


@pytest.mark.parametrize(("changes", "says"), REFUSED)
def test_webhook_that_makes_no_sense_is_refused(admin: httpx.Client, changes: dict[str, Any], says: str) -> None:
    before = admin.get("/api/v1/webhooks").json()
    answer = admin.post("/api/v1/webhooks", json=webhook(**changes))
    assert answer.status_code == 400
    assert says in answer.text
    assert admin.get("/api/v1/webhooks").json() == before


def test_name_is_unique_in_its_workspace(admin: httpx.Client) -> None:
    made = make(admin)
    assert admin.post("/api/v1/webhooks", json=webhook(name=made["name"])).status_code == 409
    make(admin, name=made["name"], workspaceId=1)
    assert admin.post("/api/v1/webhooks", json=webhook(workspaceId=10**6)).status_code == 404


def test_webhooks_without_a_name_get_one(admin: httpx.Client) -> None:
    unnamed = webhook()
    del unnamed["name"]
    answers = [admin.post("/api/v1/webhooks", json=body) for body in (unnamed, unnamed, {**unnamed, "name": " "})]
    made = [answer.json()["webhook"] for answer in answers]
    assert len({each["name"].strip() for each in made} - {""}) == 3
    listed = admin.get("/api/v1/webhooks").json()["webhooks"]
    assert all(each in listed for each in made)


def test_users_change_webhooks_of_their_own_workspaces_only(
    admin: httpx.Client, user: httpx.Client, world: World
) -> None:
    own = world.in_database(lambda connection: insert_workspace(connection, name=new_uuid(), owner_id=2))
    foreign = world.in_database(lambda connection: insert_workspace(connection, name=new_uuid()))
    everywhere, hidden = make(admin), make(admin, workspaceId=foreign)
    mine = make(user, workspaceId=own)
    assert user.post("/api/v1/webhooks", json=webhook()).status_code == 403
    assert user.post("/api/v1/webhooks", json=webhook(workspaceId=foreign)).status_code == 403
    seen = [each["id"] for each in user.get("/api/v1/webhooks").json()["webhooks"]]
    assert (mine["id"] in seen, everywhere["id"] in seen, hidden["id"] in seen) == (True, True, False)
    assert user.delete(f"/api/v1/webhooks/{hidden['id']}").status_code == 404
    assert user.delete(f"/api/v1/webhooks/{everywhere['id']}").status_code == 403
    assert user.delete(f"/api/v1/webhooks/{mine['id']}").status_code == 200


def test_test_is_sent_while_its_user_waits(admin: httpx.Client, receiver: Receiver) -> None:
    made = make(admin, url=receiver.url)
    assert admin.post(f"/api/v1/webhooks/{made['id']}/test").json() == {"completed": True}
    [(headers, body)] = receiver.received
    assert headers[SIGNATURE] == signature(body, key="k", timestamp=headers[TIMESTAMP])
    assert b'"event_data":{"data":"test"}' in body
    slack = make(admin, url=receiver.url, webhookType="WEBHOOK_TYPE_SLACK")
    assert admin.post(f"/api/v1/webhooks/{slack['id']}/test").status_code == 200
    assert SIGNATURE not in receiver.received[1][0]
    receiver.status = 500
    answer = admin.post(f"/api/v1/webhooks/{made['id']}/test")
    assert answer.status_code == 400
    assert "answered 500" in answer.text


def test_redirect_to_a_private_address_is_refused(admin: httpx.Client, receiver: Receiver) -> None:
    receiver.status, receiver.location = 307, "http://10.0.0.1:1/secret"
    made = make(admin, url=receiver.url)
    answer = admin.post(f"/api/v1/webhooks/{made['id']}/test")
    assert answer.status_code == 400
    assert "10.0.0.1 is a private address" in answer.text


def test_custom_event_goes_to_the_webhooks_that_the_experiment_names(admin: httpx.Client, world: World) -> None:
    named = make(admin, mode="WEBHOOK_MODE_SPECIFIC", **trigger("CUSTOM"))
    make(admin, mode="WEBHOOK_MODE_SPECIFIC", **trigger("CUSTOM"))
    config = {"name": "e", "integrations": {"webhooks": {"webhook_name": [named["name"], "nobody"]}}}
    naming, other = (
        world.in_database(lambda connection, config=each: insert_experiment(connection, config=config))
        for each in (config, {"name": "other"})
    )
    data = {"title": "t", "description": "d", "level": "LOG_LEVEL_WARNING"}
    for experiment in (naming, other):
        body = {"data": data, "experimentId": experiment}
        assert admin.post("/api/v1/webhooks/custom", json=body).json() == {}

    async def waiting(connection: Connection) -> list[Any]:
        query = select(webhook_deliveries.c.webhook_id, webhook_deliveries.c.event)
        return list(await connection.execute(query))

    [(webhook_id, event)] = world.in_database(waiting)
    assert webhook_id == named["id"]
    assert event["custom"] == {"title": "t", "description": "d", "level": "WARNING"}
    assert event["experiment"]["id"] == naming
    for body, status in (
        ({"data": data, "experimentId": 10**6}, 404),
        ({"data": data, "experimentId": naming, "trialId": 10**6}, 404),
        ({"experimentId": naming}, 400),
    ):
        assert admin.post("/api/v1/webhooks/custom", json=body).status_code == status
    assert admin.delete(f"/api/v1/webhooks/{named['id']}").status_code == 200
    assert world.in_database(waiting) == []


def test_event_webhooks_are_for_administrators(admin: httpx.Client, user: httpx.Client, receiver: Receiver) -> None:
    body = {"name": new_uuid(), "url": receiver.url, "types": ["resolute.v1.experiment.*"]}
    path = "/api/v1/resolute/event-webhooks"
    assert user.post(path, json=body).status_code == 403
    assert user.get(path).status_code == 403
    made = admin.post(path, json=body).json()["webhook"]
    assert admin.get(path).json()["webhooks"] == [made]
    assert made["id"] not in [each["id"] for each in admin.get("/api/v1/webhooks").json()["webhooks"]]
    assert admin.delete(f"/api/v1/webhooks/{made['id']}").status_code == 404
    assert admin.post(f"{path}/{made['id']}/test").json() == {"completed": True}
    assert receiver.received[0][0]["Content-Type"].startswith("application/cloudevents+json")
    assert admin.post(path, json={**body, "name": "x", "types": ["resolute.v1.nothing"]}).status_code == 400
    assert admin.post(path, json={**body, "name": "x", "types": []}).status_code == 400
    assert admin.patch(f"{path}/{made['id']}", json={"url": "https://example.org"}).status_code == 200
    assert admin.delete(f"{path}/{made['id']}").json() == {}
    assert admin.get(path).json()["webhooks"] == []


def test_key_of_signatures_is_in_the_configuration_of_the_master(admin: httpx.Client, world: World) -> None:
    assert admin.get("/api/v1/master/config").json()["config"]["webhooks"]["signing_key"] == "k"

    async def made(connection: Connection) -> str:
        return str((await connection.execute(text("SELECT webhook_signing_key FROM cluster"))).scalar_one())

    assert len(world.in_database(made)) == 32
