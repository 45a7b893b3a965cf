"""What ``resolute doctor`` says of the login provider and of SCIM."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace
from sqlalchemy import insert

from deploy.operations.doctor.command import examine
from deploy.operations.doctor.findings import Finding, problem, warning
from deploy.operations.doctor.logins.login_provider import about_transport, check_login_provider
from deploy.operations.doctor.logins.scim import check_scim
from deploy.operations.settings import OperationsSettings
from libs.bus import BusSettings
from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig, ScimAuthConfig, ScimConfig
from libs.cluster.oidc import SECRET_VARIABLE, OidcConfig
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from libs.db.tables.users import oauth_clients
from tests.harness.clock import FakeClock
from tests.harness.oidc_provider import DISCOVERY, OidcStandIn, oidc_provider

LONG = "of random letters"
WITH_SECRET = {SECRET_VARIABLE: "s"}


@pytest.fixture(scope="module")
def running() -> Iterator[OidcStandIn]:
    with oidc_provider() as provider:
        yield provider


@pytest.fixture
def provider(running: OidcStandIn) -> OidcStandIn:
    """One that answers as it should."""
    running.answers.clear()
    running.discovery.clear()
    running.asked.clear()
    return running


def config_of(issuer: str, **changed: Any) -> OidcConfig:
    return OidcConfig(
        **{
            "enabled": True,
            "provider": "Okta",
            "client_id": "resolute",
            "idp_sso_url": issuer,
            "idp_recipient_url": "https://resolute.example.com",
            **changed,
        }
    )


async def looked(provider: OidcStandIn, environ: dict[str, str] | None = None, **changed: Any) -> list[Finding]:
    config = config_of(provider.issuer, **changed)
    return await check_login_provider(config, SystemClock(), WITH_SECRET if environ is None else environ)


async def test_a_provider_that_works_is_good(provider: OidcStandIn) -> None:
    provider.discovery["token_endpoint_auth_methods_supported"] = ["private_key_jwt", "client_secret_post"]
    provider.discovery["id_token_signing_alg_values_supported"] = ["HS256", "ES256"]
    found = await looked(provider)
    assert {finding.level for finding in found} == {"ok"}
    assert [finding.says for finding in found] == [
        f"{provider.issuer} answers, and is the issuer that is configured",
        "its clock agrees with ours within 60 s",
        "publishes 1 key that ID tokens can be checked with",
        "DET_OIDC_CLIENT_SECRET is set",
    ]
    assert provider.asked == [DISCOVERY, "/keys"], "nothing that could change something"


async def test_without_a_provider_nobody_is_asked(provider: OidcStandIn) -> None:
    assert await looked(provider, enabled=False) == []
    assert provider.asked == []


async def test_a_provider_that_is_not_there_is_found() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        issuer = f"http://127.0.0.1:{free.getsockname()[1]}"
        found = await check_login_provider(config_of(issuer), SystemClock(), WITH_SECRET)
    assert [finding.level for finding in found] == ["problem", "ok"]
    assert found[0].says.startswith(f"{issuer}{DISCOVERY} does not answer: ")
    assert "oidc.idp_sso_url" in found[0].remedy


def large() -> web.Response:
    return web.Response(body=b" " * (1024 * 1024 + 1))


BAD: list[tuple[str, str, Callable[[], web.Response], str]] = [
    ("no document", DISCOVERY, lambda: web.Response(status=404), f"{DISCOVERY} answered 404"),
    (
        "a redirect",
        DISCOVERY,
        lambda: web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}),
        f"{DISCOVERY} answered 302",
    ),
    ("no JSON", DISCOVERY, lambda: web.Response(text="<html>"), f"{DISCOVERY} answered with what is no answer"),
    ("half of it", DISCOVERY, lambda: web.json_response({"issuer": "x"}), "missing required field"),
    ("nested", DISCOVERY, lambda: web.Response(text='{"x":' + "[" * 50_000), "what is no answer"),
    ("no end", DISCOVERY, large, "answered with more than 1048576 bytes"),
    ("no keys", "/keys", lambda: web.Response(status=500), "/keys answered 500"),
    ("no key set", "/keys", lambda: web.json_response([]), "/keys answered with what is no answer"),
    (
        "strange keys",
        "/keys",
        lambda: web.json_response({"keys": ["x", {"kty": "lattice"}, {"kty": "oct", "k": "eA"}]}),
        "publishes 3 keys, none of which ID tokens can be checked with",
    ),
]


@pytest.mark.parametrize(("path", "answer", "says"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
async def test_answers_that_are_none_are_found(
    provider: OidcStandIn, path: str, answer: Callable[[], web.Response], says: str
) -> None:
    provider.answers[path] = answer
    (found,) = [finding for finding in await looked(provider) if finding.level != "ok"]
    assert found.level == "problem"
    assert says in found.says
    assert found.remedy


@pytest.mark.parametrize(
    ("published", "says"),
    [
        (
            {"issuer": "https://other.example.com"},
            "it calls itself https://other.example.com, and oidc.idp_sso_url is ",
        ),
        ({"token_endpoint_auth_methods_supported": ["private_key_jwt"]}, "it takes a client by private_key_jwt alone"),
        ({"id_token_signing_alg_values_supported": ["HS256", "none"]}, "it signs ID tokens with HS256, none alone"),
    ],
)
async def test_a_provider_that_no_login_would_end_well_at_is_found(
    provider: OidcStandIn, published: dict[str, Any], says: str
) -> None:
    provider.discovery.update(published)
    (found,) = [finding for finding in await looked(provider) if finding.level != "ok"]
    assert (found.level, found.says.startswith(says)) == ("problem", True), found


@pytest.mark.parametrize(("hours", "says"), [(2, "behind ours"), (-2, "ahead of ours")])
async def test_a_clock_that_is_off_is_found(provider: OidcStandIn, hours: float, says: str) -> None:
    clock = FakeClock(datetime.now(UTC) + timedelta(hours=hours))
    found = await check_login_provider(config_of(provider.issuer), clock, WITH_SECRET)
    (wrong,) = [finding for finding in found if finding.level != "ok"]
    assert (wrong.level, wrong.says.endswith(says)) == ("problem", True), wrong


async def test_a_client_without_a_secret_is_told_where_one_goes(provider: OidcStandIn) -> None:
    assert (await looked(provider, {}))[-1] == warning(
        "login provider",
        "there is no client secret: neither DET_OIDC_CLIENT_SECRET here nor oidc.client_secret",
        remedy="set DET_OIDC_CLIENT_SECRET where the api runs; a public client needs none",
    )
    assert (await looked(provider, {}, client_secret="s"))[-1].says == "oidc.client_secret is set"


def test_a_provider_without_encryption_is_warned_of() -> None:
    assert [each.level for each in about_transport("http://login.invalid")] == ["warning"]
    assert about_transport("https://login.invalid") == about_transport("http://localhost:1") == []


async def test_settings_of_scim_are_looked_at(database_url: str) -> None:
    database = DatabaseSettings(url=database_url)
    basic = ScimConfig(enabled=True, auth=ScimAuthConfig(username="okta", password=LONG))
    with_logins = ClusterConfig(scim=basic, oidc=config_of("https://login.example.com"))

    async def levels(cluster: ClusterConfig) -> list[tuple[str, str]]:
        return [(finding.level, finding.says) for finding in await check_scim(cluster, database)]

    assert await levels(ClusterConfig()) == []
    assert await levels(with_logins) == [("ok", "its password is long enough")]
    short = replace(basic, auth=ScimAuthConfig(username="okta", password="okta"))
    assert await levels(replace(with_logins, scim=short)) == [
        ("warning", "its password has 4 characters, and whoever guesses it makes users")
    ]
    assert (await levels(replace(with_logins, oidc=OidcConfig())))[0] == (
        "warning",
        "makes users who cannot log in: they have no password here, and oidc is not enabled",
    )
    by_clients = replace(with_logins, scim=replace(basic, auth=ScimAuthConfig(type="oauth")))
    assert await check_scim(by_clients, database) == [
        problem(
            "scim",
            "nobody can call it: scim.auth.type is oauth, and there is no client",
            remedy="run: det oauth client add NAME DOMAIN",
        )
    ]
    row = {"id": "x", "name": "okta", "domain": "https://okta.example.com", "secret_hash": b""}
    async with connect_database(database) as db, db.transaction() as connection:
        await connection.execute(insert(oauth_clients).values(row))
    assert await levels(by_clients) == [("ok", "1 OAuth client may get a token")]


async def test_the_command_looks_at_both(
    provider: OidcStandIn, database_url: str, bus_settings: BusSettings, tmp_path: Path
) -> None:
    path = tmp_path / "cluster.yaml"
    await asyncio.to_thread(
        path.write_text,
        f"oidc: {{enabled: true, provider: Okta, client_id: me, idp_sso_url: '{provider.issuer}',"
        " idp_recipient_url: 'https://resolute.example.com'}\n"
        f"scim: {{enabled: true, auth: {{username: okta, password: {LONG}}}}}\n",
    )
    settings = OperationsSettings(
        database=DatabaseSettings(url=database_url), bus=bus_settings, cluster_config=str(path)
    )
    parts = {finding.part for finding in await examine(settings, SystemClock())}
    assert {"login provider", "scim"} <= parts
