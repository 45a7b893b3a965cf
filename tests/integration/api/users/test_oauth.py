"""OAuth 2.0 for SCIM: clients by the SDK and the command line, and tokens as providers of identities get them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.harness.api import ApiProcess
from tests.harness.det import Det
from tests.harness.no_tls import NO_TLS
from tests.integration.api.world import CLUSTER, World

BACK: Final = "https://system-admin.okta.com/admin/app/callback"


@pytest.fixture(scope="module")
def api(world: World) -> Iterator[ApiProcess]:
    path = world.directory / "oauth.yaml"
    path.write_text(CLUSTER + "scim: {enabled: true, auth: {type: oauth}}\n")
    with world.api("oauth", cluster_config=str(path)) as api:
        yield api


@pytest.fixture
def client(admin: httpx.Client) -> dict[str, str]:
    reply = admin.post("/oauth2/clients", json={"name": "Okta", "domain": "https://okta.com"})
    assert reply.status_code == 200, reply.text
    found: dict[str, str] = reply.json()
    return found


def code_for(admin: httpx.Client, client: dict[str, str], **query: str) -> dict[str, list[str]]:
    """What the provider is told when an administrator comes back to it."""
    asked = {"response_type": "code", "client_id": client["id"], "redirect_uri": BACK, "state": "a b", **query}
    reply = admin.get("/oauth2/authorize", params=asked)
    assert reply.status_code == 303, reply.text
    address = urlsplit(reply.headers["location"])
    assert f"{address.scheme}://{address.netloc}{address.path}" == asked["redirect_uri"].partition("?")[0]
    return parse_qs(address.query)


def asked(api: ApiProcess, client: dict[str, str], **form: str) -> httpx.Response:
    return httpx.post(f"{api.url}/oauth2/token", data=form, auth=(client["id"], client["secret"]), verify=NO_TLS)


def users(api: ApiProcess, token: str) -> int:
    return httpx.get(f"{api.url}/scim/v2/Users", headers={"Authorization": f"Bearer {token}"}).status_code


def refusal(reply: httpx.Response) -> tuple[int, str]:
    assert reply.headers["cache-control"] == "no-store"
    return reply.status_code, reply.json()["error"]


def test_a_code_becomes_tokens_once(admin: httpx.Client, api: ApiProcess, client: dict[str, str]) -> None:
    told = code_for(admin, client)
    assert told["state"] == ["a b"]
    form = {"grant_type": "authorization_code", "code": told["code"][0], "redirect_uri": BACK}
    reply = asked(api, client, **form)
    assert reply.status_code == 200, reply.text
    granted = reply.json()
    assert (granted["token_type"], granted["expires_in"]) == ("Bearer", 3600)
    assert users(api, granted["access_token"]) == 200
    assert refusal(asked(api, client, **form)) == (400, "invalid_grant")
    again = asked(api, client, grant_type="refresh_token", refresh_token=granted["refresh_token"]).json()
    assert users(api, again["access_token"]) == 200
    for wrong in (granted["access_token"], "", "\0"):
        assert asked(api, client, grant_type="refresh_token", refresh_token=wrong).status_code == 400
    # A new authorization is the only one, and neither kind of token is worth anything as the other.
    form["code"] = code_for(admin, client)["code"][0]
    newer = asked(api, client, **form).json()
    assert refusal(asked(api, client, grant_type="refresh_token", refresh_token=granted["refresh_token"]))[0] == 400
    assert users(api, newer["refresh_token"]) == 401
    assert httpx.get(f"{api.url}/api/v1/me", headers={"Authorization": f"Bearer {newer['access_token']}"}).is_error


def test_a_client_may_come_in_its_own_name(admin: httpx.Client, api: ApiProcess, client: dict[str, str]) -> None:
    fields = {"client_id": client["id"], "client_secret": client["secret"], "grant_type": "client_credentials"}
    granted = httpx.post(f"{api.url}/oauth2/token", data=fields, verify=NO_TLS).json()
    assert "refresh_token" not in granted
    assert users(api, granted["access_token"]) == 200
    assert admin.delete(f"/oauth2/clients/{client['id']}").status_code == 200
    assert users(api, granted["access_token"]) == 401
    reply = httpx.post(f"{api.url}/oauth2/token", data=fields, verify=NO_TLS)
    assert refusal(reply) == (401, "invalid_client")
    assert reply.headers["www-authenticate"].startswith("Basic ")


@pytest.mark.parametrize(
    ("form", "status", "code"),
    [
        ({}, 400, "unsupported_grant_type"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": "authorization_code"}, 400, "invalid_grant"),
        ({"grant_type": "authorization_code", "code": "\0"}, 400, "invalid_request"),
    ],
)
def test_what_gives_no_token(
    api: ApiProcess, client: dict[str, str], form: dict[str, str], status: int, code: str
) -> None:
    assert refusal(asked(api, client, **form)) == (status, code)
    assert refusal(asked(api, {**client, "secret": "wrong"}, **form))[0] in (400, 401)


@pytest.mark.parametrize(
    "content", [b"\xff", b"a=1&a=2", b"&".join(b"f%d=1" % n for n in range(99))], ids=["bytes", "twice", "many"]
)
def test_what_is_no_form_is_refused(api: ApiProcess, content: bytes) -> None:
    assert refusal(httpx.post(f"{api.url}/oauth2/token", content=content, verify=NO_TLS)) == (400, "invalid_request")


def test_a_code_is_for_one_client_and_one_address(admin: httpx.Client, api: ApiProcess, client: dict[str, str]) -> None:
    other = admin.post("/oauth2/clients", json={"name": "Other", "domain": "okta.com"}).json()
    form = {"grant_type": "authorization_code", "redirect_uri": BACK}
    assert refusal(asked(api, other, code=code_for(admin, client)["code"][0], **form)) == (400, "invalid_grant")
    elsewhere = code_for(admin, client, redirect_uri="https://okta.com/x?y=1")["code"][0]
    assert refusal(asked(api, client, code=elsewhere, **form)) == (400, "invalid_grant")


@pytest.mark.parametrize(
    "query",
    [
        {"redirect_uri": "https://evil.example/"},
        {"redirect_uri": "https://evilokta.com/"},
        {"redirect_uri": "https://okta.com@evil.example/"},
        {"redirect_uri": "https://evil.example\\.okta.com/"},
        {"redirect_uri": "http://okta.com/"},
        {"redirect_uri": "//okta.com/"},
        {"redirect_uri": "https://[okta.com/"},
        {"redirect_uri": "javascript:alert(1)//okta.com"},
        {"redirect_uri": "https://okta.com/#x"},
        {"redirect_uri": "https://okta.com/\r\nSet-Cookie: a=b"},
        {"redirect_uri": ""},
        {"client_id": "nobody"},
        {"client_id": "\0"},
    ],
)
def test_codes_go_nowhere_else(admin: httpx.Client, client: dict[str, str], query: dict[str, str]) -> None:
    asked = {"response_type": "code", "client_id": client["id"], "redirect_uri": BACK, **query}
    reply = admin.get("/oauth2/authorize", params=asked)
    assert (reply.status_code, "location" in reply.headers) == (400, False), reply.text


def test_who_authorizes_has_logged_in_and_administers(
    api: ApiProcess, user: httpx.Client, admin: httpx.Client, client: dict[str, str]
) -> None:
    asked = {"response_type": "code", "client_id": client["id"], "redirect_uri": BACK, "state": "s"}
    reply = httpx.get(f"{api.url}/oauth2/authorize", params=asked)
    assert reply.status_code == 303
    login = urlsplit(reply.headers["location"])
    assert login.path == "/det/login"
    (back,) = parse_qs(login.query)["redirect"]
    assert parse_qs(urlsplit(back).query) == {key: [value] for key, value in asked.items()}
    assert user.get("/oauth2/authorize", params=asked).status_code == 403
    assert code_for(admin, client, response_type="token") == {"error": ["unsupported_response_type"], "state": ["a b"]}


def test_clients_are_for_administrators(user: httpx.Client, api: ApiProcess, client: dict[str, str]) -> None:
    assert user.get("/oauth2/clients").status_code == 403
    assert user.post("/oauth2/clients", json={"name": "x", "domain": "x.example"}).status_code == 403
    assert user.delete(f"/oauth2/clients/{client['id']}").status_code == 403
    assert httpx.get(f"{api.url}/oauth2/clients").status_code == 401


@pytest.mark.parametrize(
    "body", [{}, {"name": "x"}, {"name": "x", "domain": "https://"}, {"name": "x" * 257, "domain": "x.example"}]
)
def test_what_is_no_client_is_refused(admin: httpx.Client, body: dict[str, Any]) -> None:
    reply = admin.post("/oauth2/clients", json=body)
    assert reply.status_code == 400
    assert reply.json()["message"].startswith(("name:", "domain:"))


def test_the_command_line_manages_clients(det: Det, admin: httpx.Client) -> None:
    made = det("oauth", "client", "add", "Entra", "login.example.com").out
    client_id, secret = (line.split()[-1] for line in made.splitlines()[-2:])
    assert "Entra" in (listed := det("oauth", "client", "list").out)
    assert client_id in listed
    assert secret not in listed + admin.get("/oauth2/clients").text
    det("oauth", "client", "remove", client_id)
    assert client_id not in det("oauth", "client", "list").out


def test_consent_is_in_the_audit_log(admin: httpx.Client, client: dict[str, str]) -> None:
    code_for(admin, client)
    records = admin.get("/api/v1/resolute/audit", params={"limit": 2}).json()["records"]
    assert [(each["action"], each["username"]) for each in records] == [
        ("GET /oauth2/authorize", "admin"),
        ("POST /oauth2/clients", "admin"),
    ]
    assert records[0]["details"] == {"client_id": client["id"]}
