"""The login provider (OpenID Connect): whether it answers, is the one that is meant, and signs what can be checked.

What is asked of it is what the api asks before the first login; nothing changes there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from deploy.operations.doctor.findings import Finding, ok, problem, warning
from libs.clock import Clock
from libs.cluster.oidc import SECRET_VARIABLE, OidcConfig

PART: Final = "login provider"
ANSWERS_WITHIN_S: Final = 10.0
LARGEST_ANSWER: Final = 1024 * 1024
Answer = TypeVar("Answer")
_DISCOVERY: Final = "/.well-known/openid-configuration"
_SECRET_METHODS: Final = frozenset({"client_secret_basic", "client_secret_post"})
"""How the api proves who it is (OpenID Connect Core 9)."""
_MEND_ADDRESS: Final = "see oidc.idp_sso_url, and whether the api and this machine reach it"


class PublishedProvider(Struct, frozen=True, kw_only=True):
    """What is needed of what a provider says of itself (OpenID Connect Discovery 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: list[str] | None = None
    id_token_signing_alg_values_supported: list[str] | None = None


class PublishedKeys(Struct, frozen=True):
    keys: list[Any]


class _NoAnswer(Exception):
    """Says which address answered what."""


async def check_login_provider(config: OidcConfig, clock: Clock, environ: Mapping[str, str]) -> list[Finding]:
    """Nothing when nobody logs in there.

    environ  of the command, which has the client secret when it runs where the api does
    """
    if not config.enabled:
        return []
    secret = about_secret(config, environ)
    issuer = config.idp_sso_url.rstrip("/")
    try:
        answer, date = await _get(issuer + _DISCOVERY)
        published = _decoded(answer, PublishedProvider, issuer + _DISCOVERY)
    except _NoAnswer as error:
        return [problem(PART, str(error), remedy=_MEND_ADDRESS), secret]
    findings = [about_issuer(published.issuer, issuer), *about_methods(published), *about_transport(issuer)]
    if date is not None:
        findings.append(about_clock(theirs=date, ours=clock.now()))
    try:
        keys, _ = await _get(published.jwks_uri)
        findings.append(about_keys(_decoded(keys, PublishedKeys, published.jwks_uri).keys))
    except _NoAnswer as error:
        remedy = "the api has to reach this address too: no login ends well without the keys"
        findings.append(problem(PART, str(error), remedy=remedy))
    return [*findings, secret]


def about_secret(config: OidcConfig, environ: Mapping[str, str]) -> Finding:
    """Pure."""
    if environ.get(SECRET_VARIABLE):
        return ok(PART, f"{SECRET_VARIABLE} is set")
    if config.client_secret:
        return ok(PART, "oidc.client_secret is set")
    return warning(
        PART,
        f"there is no client secret: neither {SECRET_VARIABLE} here nor oidc.client_secret",
        remedy=f"set {SECRET_VARIABLE} where the api runs; a public client needs none",
    )


def about_issuer(found: str, configured: str) -> Finding:
    """Pure."""
    if found.rstrip("/") == configured:
        return ok(PART, f"{configured} answers, and is the issuer that is configured")
    return problem(
        PART, f"it calls itself {found[:200]}, and oidc.idp_sso_url is {configured}", remedy="make them the same"
    )


def about_methods(published: PublishedProvider) -> list[Finding]:
    """How it wants clients to prove who they are, and how it signs; what it does not say is as the standard has it.
    Pure."""
    from services.api.oidc.id_tokens import ALGORITHMS  # noqa: PLC0415  (see about_keys)

    found = []
    methods = published.token_endpoint_auth_methods_supported
    if methods and not _SECRET_METHODS & set(methods) and "none" not in methods:
        found.append(
            problem(
                PART,
                f"it takes a client by {', '.join(methods)[:200]} alone",
                remedy=f"allow one of {', '.join(sorted(_SECRET_METHODS))} for this client",
            )
        )
    algorithms = published.id_token_signing_alg_values_supported
    if algorithms and not set(ALGORITHMS) & set(algorithms):
        found.append(
            problem(
                PART,
                f"it signs ID tokens with {', '.join(algorithms)[:200]} alone, which prove nothing here",
                remedy="have it sign with RS256 or ES256",
            )
        )
    return found


def about_transport(issuer: str) -> list[Finding]:
    """Pure."""
    parts = urlsplit(issuer)
    if parts.scheme == "https" or _is_this_machine(parts.hostname or ""):
        return []
    says = f"{issuer} is not encrypted: whoever sees the traffic can log in as anybody"
    return [warning(PART, says, remedy="use https")]


def about_clock(*, theirs: datetime, ours: datetime) -> Finding:
    """Answers say the time in whole seconds, and what stands between may have kept them for a moment. Pure."""
    from services.api.oidc.id_tokens import LEEWAY_S  # noqa: PLC0415  (see about_keys)

    ahead_s = (theirs - ours).total_seconds()
    if abs(ahead_s) <= LEEWAY_S:
        return ok(PART, f"its clock agrees with ours within {LEEWAY_S} s")
    says = f"its clock is {abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} ours"
    return problem(PART, says, remedy="synchronize the clocks (NTP): its ID tokens count only now")


def about_keys(entries: Sequence[Any]) -> Finding:
    """Pure."""
    # Here, for the library of keys is needed by nothing else of the command.
    from services.api.oidc.id_tokens import usable_keys  # noqa: PLC0415

    usable = len(usable_keys(entries))
    if usable:
        return ok(PART, f"publishes {usable} key{'s' if usable > 1 else ''} that ID tokens can be checked with")
    says = f"publishes {len(entries)} keys, none of which ID tokens can be checked with"
    return problem(PART, says, remedy="have it publish an RSA or EC key at its jwks_uri")


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _get(url: str) -> tuple[bytes, datetime | None]:
    """Body, and what the time is there. Raises _NoAnswer."""
    import httpx  # noqa: PLC0415  (most installations ask no provider)

    try:
        async with (
            asyncio.timeout(ANSWERS_WITHIN_S),
            httpx.AsyncClient(timeout=ANSWERS_WITHIN_S, follow_redirects=False) as client,
            client.stream("GET", url, headers={"Accept": "application/json"}) as answer,
        ):
            if answer.status_code != httpx.codes.OK:
                raise _NoAnswer(f"{url} answered {answer.status_code}")
            body = b""
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > LARGEST_ANSWER:
                    raise _NoAnswer(f"{url} answered with more than {LARGEST_ANSWER} bytes")
            return body, _time(answer.headers.get("date"))
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError) as error:
        reason = "no answer in time" if isinstance(error, TimeoutError | httpx.TimeoutException) else str(error)
        raise _NoAnswer(f"{url} does not answer: {reason or type(error).__name__}") from error


def _time(header: str | None) -> datetime | None:
    try:
        found = None if header is None else parsedate_to_datetime(header)
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def _decoded(body: bytes, kind: type[Answer], url: str) -> Answer:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _NoAnswer(f"{url} answered with what is no answer: {error}") from error
