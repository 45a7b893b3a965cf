"""Login at a provider of OpenID Connect: who gets in, as whom, and what is said to everybody else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import ANY
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import httpx
import pytest
import yaml
from aiohttp import web

from libs.clock import SystemClock
from libs.cluster.oidc import OidcConfig
from libs.errors import Unauthenticated
from services.api.oidc import provider as provider_module
from services.api.oidc.attempts import begin_attempt
from services.api.oidc.provider import OidcProvider
from tests.harness.api import ApiProcess
from tests.harness.oidc_provider import CLIENT_ID, CLIENT_SECRET, DISCOVERY, OidcStandIn, new_key, oidc_provider
from tests.integration.api.world import CLUSTER, World

# Without the certificates of the system, which take longer to load than the request.
get, post = partial(httpx.get, verify=False, timeout=30), partial(httpx.post, verify=False, timeout=30)

BASE = "https://resolute.example.com"
HTML = {"Accept": "text/html,*/*"}
CLAIMS = {
    "groups_attribute_name": "groups",
    "display_name_attribute_name": "name",
    "agent_uid_attribute_name": "uid",
    "agent_gid_attribute_name": "gid",
    "agent_user_name_attribute_name": "login",
    "agent_group_name_attribute_name": "team",
}


@pytest.fixture
def provider(shared_provider: OidcStandIn) -> Iterator[OidcStandIn]:
    """Who logs in is new in every test, unless it says otherwise."""
    before = dict(vars(shared_provider))
    fresh = OidcStandIn(port=shared_provider.port, key=shared_provider.key)
    vars(shared_provider).update(vars(fresh))
    shared_provider.user = {"sub": "1", "email": f"{uuid4().hex}@example.com"}
    yield shared_provider
    vars(shared_provider).update({name: before[name] for name in ("key", "discovery")})


@pytest.fixture(scope="module")
def shared_provider() -> Iterator[OidcStandIn]:
    with oidc_provider() as provider:
        yield provider


def configured(
    world: World, name: str, provider: OidcStandIn, monkeypatch: pytest.MonkeyPatch, **oidc: Any
) -> ApiProcess:
    settings = {
        "enabled": True,
        "provider": "Stand-in",
        "client_id": CLIENT_ID,
        "idp_sso_url": f"{provider.issuer}/",
        "idp_recipient_url": BASE,
        **oidc,
    }
    path = world.directory / f"{name}.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(CLUSTER), "oidc": settings}))
    monkeypatch.setenv("DET_OIDC_CLIENT_SECRET", CLIENT_SECRET)
    return world.api(name, cluster_config=str(path))


@pytest.fixture(scope="module")
def provisioning(world: World, shared_provider: OidcStandIn) -> Iterator[ApiProcess]:
    with pytest.MonkeyPatch.context() as patch:
        api = configured(world, "provisioning", shared_provider, patch, auto_provision_users=True, **CLAIMS)
        with api:
            yield api


@pytest.fixture(scope="module")
def strict(world: World, shared_provider: OidcStandIn) -> Iterator[ApiProcess]:
    """Makes no users, and has its secret in its file."""
    with pytest.MonkeyPatch.context() as patch:
        api = configured(world, "strict", shared_provider, patch, always_redirect=True, client_secret=CLIENT_SECRET)
        patch.delenv("DET_OIDC_CLIENT_SECRET")
        with api:
            yield api


class Browser:
    """Follows a login as browsers do; what it knows as ``BASE`` is one api or another."""

    def __init__(self, api: ApiProcess) -> None:
        self.api = api
        self.cookie = ""

    def begin(self, relay_state: str = "") -> httpx.Response:
        query = f"?relayState={relay_state}" if relay_state else ""
        reply = get(f"{self.api.url}/oidc/sso{query}", headers=HTML)
        self.cookie = reply.headers.get("set-cookie", "").partition(";")[0]
        return reply

    def at_provider(self, begun: httpx.Response) -> str:
        """The address here that the provider leads back to."""
        assert begun.status_code == 303, begun.text
        back = get(begun.headers["location"]).headers["location"]
        assert back.startswith(f"{BASE}/oidc/callback?")
        return back.removeprefix(BASE)

    def come_back(self, path: str, accept: str = "text/html") -> httpx.Response:
        return get(f"{self.api.url}{path}", headers={"Cookie": self.cookie, "Accept": accept})

    def log_in(self, relay_state: str = "") -> httpx.Response:
        return self.come_back(self.at_provider(self.begin(relay_state)))

    def refused(self) -> tuple[int, str]:
        reply = self.come_back(self.at_provider(self.begin()), accept="*/*")
        return reply.status_code, reply.json()["message"]


def token_of(reply: httpx.Response) -> str:
    assert reply.status_code == 303, reply.text
    name, _, token = reply.headers["set-cookie"].partition(";")[0].partition("=")
    assert name == "__Host-auth"
    return token


def me(api: ApiProcess, reply: httpx.Response) -> dict[str, Any]:
    found = get(f"{api.url}/api/v1/me", headers={"Cookie": f"__Host-auth={token_of(reply)}"})
    assert found.status_code == 200, found.text
    user: dict[str, Any] = found.json()["user"]
    return user


def groups_of(admin: httpx.Client, user_id: int) -> set[str]:
    reply = admin.post("/api/v1/groups/search", json={"userId": user_id, "limit": 100})
    return {each["group"]["name"] for each in reply.json()["groups"]}


def audited(admin: httpx.Client, username: str) -> list[dict[str, Any]]:
    reply = admin.get("/api/v1/resolute/audit", params={"username": username})
    records: list[dict[str, Any]] = reply.json()["records"]
    return records


def test_a_new_user_is_made_as_the_provider_says_and_changed_at_the_next_login(
    provisioning: ApiProcess, provider: OidcStandIn, admin: httpx.Client
) -> None:
    browser, one, two = Browser(provisioning), f"one-{uuid4().hex}", f"two-{uuid4().hex}"
    name = uuid4().hex
    posix = {"uid": 1234, "gid": "99", "login": "ann", "team": "staff"}
    strange = ["", "x" * 300, "1DeterminedPersonalGroup", "\0", "\n"]
    provider.user |= {"name": name, "groups": [one, two, *strange], **posix}
    user = me(provisioning, browser.log_in())
    assert (user["username"], user["displayName"], user["remote"], user["admin"]) == (
        provider.user["email"],
        name,
        True,
        False,
    )
    assert user["agentUserGroup"] == {"agentUid": 1234, "agentGid": 99, "agentUser": "ann", "agentGroup": "staff"}
    assert groups_of(admin, user["id"]) == {one, two}

    provider.user |= {"name": f"{name} II", "groups": [two], "uid": 4321}
    again = me(provisioning, browser.log_in())
    assert (again["id"], again["displayName"], again["agentUserGroup"]["agentUid"]) == (user["id"], f"{name} II", 4321)
    assert groups_of(admin, user["id"]) == {two}
    del provider.user["groups"]
    browser.log_in()
    assert groups_of(admin, user["id"]) == set()
    records = audited(admin, provider.user["email"])
    assert [record["action"] for record in records] == ["GET /oidc/callback"] * 3
    assert [record["details"].get("groups") for record in records[:2]] == [[], [two]]
    assert all("refused" not in record["details"] for record in records)


def test_many_first_logins_at_once_make_one_user_and_each_group_once(
    provisioning: ApiProcess, provider: OidcStandIn, admin: httpx.Client
) -> None:
    provider.user["groups"] = [uuid4().hex for _ in range(5)]
    replies: list[httpx.Response] = []

    def log_in() -> None:
        replies.append(Browser(provisioning).log_in())

    threads = [threading.Thread(target=log_in) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = {me(provisioning, reply)["id"] for reply in replies}
    assert len(replies) == 6
    assert len(ids) == 1
    assert groups_of(admin, ids.pop()) == set(provider.user["groups"])


def test_a_display_name_that_cannot_be_had_stops_nobody(provisioning: ApiProcess, provider: OidcStandIn) -> None:
    provider.user["name"] = "admin"
    assert me(provisioning, Browser(provisioning).log_in())["displayName"] == ""
    provider.user["name"] = "Jörg"
    assert me(provisioning, Browser(provisioning).log_in())["displayName"] == ""


def test_nobody_is_made_where_the_configuration_does_not_say_so(
    strict: ApiProcess, provider: OidcStandIn, admin: httpx.Client
) -> None:
    username = provider.user["email"]
    assert Browser(strict).refused() == (404, "user has not been provisioned")
    body: dict[str, Any] = {"user": {"username": username, "active": True}}
    ident = admin.post("/api/v1/users", json=body).json()["user"]["id"]
    assert Browser(strict).refused() == (400, "user exists but was not created with the --remote option")
    admin.patch(f"/api/v1/users/{ident}", json={"remote": True, "active": False})
    assert Browser(strict).refused() == (400, "user is not active")
    refusals = [record["details"]["refused"] for record in audited(admin, username)]
    assert refusals == [
        "user is not active",
        "user exists but was not created with the --remote option",
        "user has not been provisioned",
    ]
    admin.patch(f"/api/v1/users/{ident}", json={"active": True})
    assert me(strict, Browser(strict).log_in())["id"] == ident
    password = strict.url + "/api/v1/auth/login"
    assert post(password, json={"username": username, "password": ""}).status_code == 401


def test_where_a_login_leads_to(provisioning: ApiProcess, provider: OidcStandIn) -> None:
    browser = Browser(provisioning)
    assert browser.log_in().headers["location"] == f"{BASE}/det/login"
    led = browser.log_in("/det/wait/%26x").headers["location"]
    assert led == f"{BASE}/det/login?relayState=%2Fdet%2Fwait%2F%26x"
    reply = browser.log_in("cli")
    to = urlsplit(reply.headers["location"])
    assert (reply.status_code, to.scheme, to.netloc) == (303, "http", "localhost:49176")
    token = parse_qs(to.query)["token"][0]
    found = get(f"{provisioning.url}/users/me", headers={"Cookie": f"auth={token}"})
    assert found.json()["username"] == provider.user["email"]
    assert reply.headers["cache-control"] == "no-store"
    assert get(f"{provisioning.url}/users/me").json() == {"message": "token missing"}
    assert browser.begin("x" * 1025).status_code == 400


def test_the_state_is_for_one_browser_and_a_short_time(provisioning: ApiProcess, provider: OidcStandIn) -> None:
    begun, other = Browser(provisioning), Browser(provisioning)
    reply = begun.begin()
    attributes = reply.headers["set-cookie"]
    assert attributes.endswith("; Path=/oidc; Max-Age=300; HttpOnly; SameSite=Lax; Secure")
    back = begun.at_provider(reply)
    other.begin()
    for cookie in ("", other.cookie, "oauth2_state=", "oauth2_state=a.b.c", "oauth2_state=é", f"{begun.cookie}x"):
        stranger = Browser(provisioning)
        stranger.cookie = cookie
        refused = get(f"{provisioning.url}{back}", headers={"Cookie": cookie.encode()})
        assert refused.status_code == 400, cookie
        assert "begin again" in refused.json()["message"]
    assert begun.come_back(back).status_code == 303
    assert begun.come_back(back, accept="*/*").status_code == 401  # a code is worth one login


def test_another_replica_may_finish_a_login(
    provisioning: ApiProcess, strict: ApiProcess, provider: OidcStandIn, admin: httpx.Client
) -> None:
    user = {"username": provider.user["email"], "active": True, "remote": True}
    admin.post("/api/v1/users", json={"user": user})
    browser = Browser(provisioning)
    back = browser.at_provider(browser.begin())
    browser.api = strict
    assert browser.come_back(back).status_code == 303


def test_what_the_provider_is_asked(provisioning: ApiProcess, provider: OidcStandIn) -> None:
    Browser(provisioning).log_in()
    asked = provider.authorizations[-1]
    assert asked["scope"] == "openid profile email groups"
    assert asked["redirect_uri"] == f"{BASE}/oidc/callback"
    assert asked["code_challenge_method"] == "S256"
    assert len({asked[name] for name in ("state", "nonce", "code_challenge")}) == 3


def test_claims_may_be_where_only_the_userinfo_has_them(provisioning: ApiProcess, provider: OidcStandIn) -> None:
    provider.only_in_user_info = {"email"}
    assert me(provisioning, Browser(provisioning).log_in())["username"] == provider.user["email"]


def test_keys_may_change(provisioning: ApiProcess, provider: OidcStandIn) -> None:
    for key in (new_key("second"), new_key("second"), new_key("third", elliptic=True)):
        provider.key = key
        assert Browser(provisioning).log_in().status_code == 303


async def test_a_key_that_the_provider_has_withdrawn_counts_for_five_minutes_at_most(
    shared_provider: OidcStandIn, provider: OidcStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(provider_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    config = OidcConfig(enabled=True, client_id=CLIENT_ID, idp_sso_url=provider.issuer, idp_recipient_url=BASE)
    client = OidcProvider(config, client_secret=CLIENT_SECRET, clock=SystemClock())

    async def log_in() -> Any:
        attempt = begin_attempt(secret="s", relay_state="", now=datetime.now(UTC))
        async with httpx.AsyncClient() as browser:
            there = await browser.get(await client.authorization_url(attempt))
        return await client.claims(parse_qs(urlsplit(there.headers["location"]).query)["code"][0], attempt)

    try:
        assert (await log_in())["email"] == provider.user["email"]
        provider.signing_key = provider.key  # stolen
        provider.key = new_key(provider.key.kid or "")
        now[0] += 301
        with pytest.raises(Unauthenticated):
            await log_in()
        provider.signing_key = None
        assert (await log_in())["email"] == provider.user["email"]
    finally:
        await client.close()


def test_an_address_that_only_the_userinfo_calls_unverified_does_not_count(
    strict: ApiProcess, provider: OidcStandIn
) -> None:
    provider.user["email_verified"] = False
    provider.only_in_user_info = {"email_verified"}
    status, message = Browser(strict).refused()
    assert (status, "verified" in message) == (403, True)


def test_names_of_the_provider_are_compared_without_case(
    provisioning: ApiProcess, provider: OidcStandIn, admin: httpx.Client
) -> None:
    name = provider.user["email"]
    provider.user["email"] = name.upper()
    first = me(provisioning, Browser(provisioning).log_in())
    provider.user["email"] = name
    assert me(provisioning, Browser(provisioning).log_in()) == {**first, "lastAuthAt": ANY, "modifiedAt": ANY}

    # Accounts that were made before, and differ by case only, stay what they are.
    body = {"user": {"username": name, "active": True, "remote": True}}
    other = admin.post("/api/v1/users", json=body).json()["user"]["id"]
    assert me(provisioning, Browser(provisioning).log_in())["id"] == other
    provider.user["email"] = name.upper()
    assert me(provisioning, Browser(provisioning).log_in())["id"] == first["id"]
    provider.user["email"] = name.title()
    status, message = Browser(provisioning).refused()
    assert (status, "upper and lower case" in message) == (400, True)


def test_a_local_account_is_not_opened_by_a_name_in_capitals(
    provisioning: ApiProcess, provider: OidcStandIn, admin: httpx.Client
) -> None:
    body = {"user": {"username": provider.user["email"], "active": True}, "password": "a", "isHashed": False}
    assert admin.post("/api/v1/users", json=body).status_code == 200
    provider.user["email"] = provider.user["email"].upper()
    assert Browser(provisioning).refused() == (400, "user exists but was not created with the --remote option")


@pytest.mark.parametrize(
    ("claims", "says"),
    [
        ({"nonce": "another"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"aud": "somebody else"}, "aud"),
        ({"aud": [CLIENT_ID, "b"], "azp": "b"}, "another client"),
        ({"iss": "https://evil.example.com"}, "iss"),
        ({"exp": 1}, "expired"),
        ({"exp": "soon"}, "exp"),
        ({"sub": None}, "sub"),
    ],
)
def test_an_id_token_that_is_not_for_this_login_opens_nothing(
    provisioning: ApiProcess, provider: OidcStandIn, claims: dict[str, Any], says: str
) -> None:
    provider.token_claims = claims
    status, message = Browser(provisioning).refused()
    assert status == 401
    assert says in message


def test_a_token_that_somebody_else_has_signed_opens_nothing(provisioning: ApiProcess, provider: OidcStandIn) -> None:
    provider.signing_key = new_key("first")
    assert Browser(provisioning).refused()[0] == 401


@pytest.mark.parametrize(
    ("claims", "status", "says"),
    [
        ({"email": None}, 400, "'email'"),
        ({"email": ""}, 400, "'email'"),
        ({"email": ["a"]}, 400, "'email'"),
        ({"email": "a\u0000b"}, 400, "'email'"),
        ({"email": "jörg@example.com"}, 400, "non-ASCII"),
        ({"email": "determined"}, 400, "--remote"),
        ({"email": "x" * 300}, 400, "256"),
        ({"email_verified": False}, 403, "verified"),
        ({"groups": 7}, 400, "'groups'"),
        ({"groups": [7]}, 400, "'groups'"),
        ({"uid": 5}, 400, "'gid'"),
        ({"uid": -1, "gid": 1, "login": "a", "team": "b"}, 400, "'uid'"),
        ({"uid": 2**31, "gid": 1, "login": "a", "team": "b"}, 400, "'uid'"),
        ({"uid": "9" * 5000, "gid": 1, "login": "a", "team": "b"}, 400, "'uid'"),
        ({"uid": True, "gid": 1, "login": "a", "team": "b"}, 400, "'uid'"),
    ],
)
def test_claims_that_make_no_sense_are_named(
    provisioning: ApiProcess, provider: OidcStandIn, claims: dict[str, Any], status: int, says: str
) -> None:
    provider.user |= claims
    found, message = Browser(provisioning).refused()
    assert found == status, message
    assert says in message


def text(content: str, status: int = 200) -> web.Response:
    return web.Response(text=content, status=status)


@pytest.mark.parametrize("path", ["/token", "/keys", "/userinfo"])
@pytest.mark.parametrize(
    "content", ["", "nonsense", "[]", "{}", '{"id_token": 7}', '{"keys": 3}', "[" * 100_000, "\ud800", "x" * 2_000_000]
)
def test_garbage_of_the_provider_is_its_fault(
    strict: ApiProcess, provider: OidcStandIn, path: str, content: str
) -> None:
    provider.key = new_key(uuid4().hex, elliptic=True)  # its keys have to be asked for
    provider.only_in_user_info = {"email"}
    body = content.encode("utf-8", "surrogatepass")
    provider.answers[path] = lambda: web.Response(body=body, content_type="application/json")
    status, message = Browser(strict).refused()
    assert status in {401, 503}
    assert "provider" in message


@pytest.mark.parametrize("status", [204, 301, 400, 401, 404, 500, 503])
@pytest.mark.parametrize("path", ["/token", "/userinfo"])
def test_a_provider_that_refuses_us_is_told_to_administrators(
    strict: ApiProcess, provider: OidcStandIn, path: str, status: int
) -> None:
    provider.only_in_user_info = {"email"}
    provider.answers[path] = lambda: text('{"error": "invalid_client"}', status)
    assert Browser(strict).refused()[0] == 503
    assert "oidc.provider_failed" in strict.process.log()


def test_a_provider_that_is_away_or_lies_about_itself_is_said_to_be(
    world: World, provider: OidcStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    with configured(world, "early", provider, monkeypatch) as api:

        def begin(accept: str = "*/*") -> httpx.Response:
            return get(f"{api.url}/oidc/sso", headers={"Accept": accept})

        for content in ("nonsense", "{}", '{"issuer": "https://evil.example.com"}'):
            provider.answers[DISCOVERY] = lambda content=content: text(content)  # type: ignore[misc]
            assert begin().status_code == 503
        provider.answers.clear()
        provider.discovery = {"issuer": "https://evil.example.com"}
        assert begin().status_code == 503
        shown = begin("text/html")
        assert shown.status_code == 503
        assert shown.headers["retry-after"]
        assert shown.headers["content-type"].startswith("text/html")
        assert "tell an administrator" in shown.text
        provider.discovery = {"token_endpoint": "http://127.0.0.1:1/token", "code_challenge_methods_supported": None}
        browser = Browser(api)
        back = browser.at_provider(browser.begin())  # it was asked anew: what failed is not remembered
        assert "code_challenge" not in provider.authorizations[-1]
        assert browser.come_back(back).status_code == 503


def test_a_login_that_the_provider_refuses_is_shown_as_a_page(provisioning: ApiProcess, provider: OidcStandIn) -> None:
    provider.refusal = "access_denied"
    browser = Browser(provisioning)
    reply = browser.log_in()
    assert reply.status_code == 401
    assert reply.headers["content-type"].startswith("text/html")
    assert "access_denied no &amp; never" in reply.text


def test_clients_are_told_of_providers_and_of_none(api: ApiProcess, strict: ApiProcess, admin: httpx.Client) -> None:
    info = get(f"{strict.url}/info").json()
    assert info["sso_providers"] == [
        {"name": "Stand-in", "sso_url": f"{BASE}/oidc/sso", "type": "OIDC", "always_redirect": True}
    ]
    master = get(f"{strict.url}/api/v1/master").json()
    assert master["ssoProviders"] == [
        {"name": "Stand-in", "ssoUrl": f"{BASE}/oidc/sso", "type": "OIDC", "alwaysRedirect": True}
    ]
    without = get(f"{api.url}/info").json()
    assert "sso_providers" in without
    assert without["sso_providers"] is None
    assert get(f"{api.url}/api/v1/master").json()["ssoProviders"] == []
    assert get(f"{api.url}/oidc/sso").status_code == 404
    assert get(f"{api.url}/oidc/callback").status_code == 404
    with strict.client() as client:
        config = client.get("/api/v1/master/config").json()["config"]
    assert config["oidc"]["client_secret"] == "********"
    assert config["oidc"]["client_id"] == CLIENT_ID
