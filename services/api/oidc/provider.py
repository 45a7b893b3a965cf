"""The provider: what it publishes about itself, where browsers are sent, and whom a code stands for.

Everything it says is read with bounds of size and time, and what is no answer is an error with a name: nobody here can
mend it, so it goes into the log for administrators, and users are told to come again.

Authlib's client for httpx, whose core (joserfc) checks the tokens, would take over some 40 lines of this file, which
build an address and redeem a code. It reads answers of any size, keeps in itself the token of the login that came last,
and asks for another library than httpx since 1.9.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar
from urllib.parse import quote_plus, urlencode, urlsplit

import httpx
import msgspec
import structlog
from joserfc.jwk import Key
from msgspec import Struct

from libs.clock import Clock
from libs.cluster.oidc import OidcConfig
from libs.errors import Unauthenticated, Unavailable
from services.api.oidc.attempts import Attempt
from services.api.oidc.id_tokens import InvalidIdToken, UnknownKey, usable_keys, verified_claims
from services.api.oidc.identity import wanted_claims

TIMEOUT_S: Final = 10.0
"""For all that is asked of the provider on behalf of one request."""
MOST_AT_ONCE: Final = 16
KNOWN_FOR_S: Final = 3600.0
KEYS_KNOWN_FOR_S: Final = 300.0
"""A key that the provider has withdrawn, as one that was stolen, counts no longer than this."""
LARGEST_ANSWER: Final = 1024 * 1024
DISCOVERY: Final = "/.well-known/openid-configuration"

log = structlog.get_logger(__name__)
Answer = TypeVar("Answer")


class Discovery(Struct, frozen=True, kw_only=True):
    """What the provider publishes about itself (OpenID Connect Discovery 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    code_challenge_methods_supported: list[str] | None = None
    token_endpoint_auth_methods_supported: list[str] | None = None


class TokenAnswer(Struct, frozen=True):
    id_token: str
    access_token: str = ""


class TokenRefusal(Struct, frozen=True):
    error: str = ""
    error_description: str = ""


class KeySetAnswer(Struct, frozen=True):
    keys: list[Any]


class OidcProvider:
    """The provider of one configuration. ``client_secret`` may come from elsewhere than the configuration."""

    def __init__(self, config: OidcConfig, *, client_secret: str, clock: Clock) -> None:
        self.config = config
        self._secret = client_secret
        self._clock = clock
        # Certificates count that the system trusts, to which administrators add their own.
        self._http = httpx.AsyncClient(verify=ssl.create_default_context(), timeout=TIMEOUT_S, follow_redirects=False)
        self._discovery: tuple[float, Discovery] | None = None
        self._keys: list[Key] = []
        self._keys_until = 0.0
        self._at_once = asyncio.Semaphore(MOST_AT_ONCE)

    async def close(self) -> None:
        await self._http.aclose()

    async def authorization_url(self, attempt: Attempt) -> str:
        """Where the browser of an attempt goes. Raises Unavailable."""
        async with self._asking():
            discovery = await self._discovered()
        query = {
            "response_type": "code",
            "client_id": self.config.client_id,
            "redirect_uri": self.config.redirect_uri,
            "scope": self.config.scopes,
            "state": attempt.state,
            "nonce": attempt.nonce,
        }
        if _has_pkce(discovery):
            query |= {"code_challenge": attempt.challenge, "code_challenge_method": "S256"}
        endpoint = discovery.authorization_endpoint
        return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(query)}"

    async def claims(self, code: str, attempt: Attempt) -> Mapping[str, Any]:
        """What is known of whoever has logged in there. Raises Unauthenticated, Unavailable."""
        async with self._asking():
            discovery = await self._discovered()
            answer = await self._redeem(discovery, code, attempt)
            claims = await self._verified(discovery, answer.id_token, attempt)
            if self._tells_all(claims) or discovery.userinfo_endpoint is None:
                return claims
            more = await self._user_info(discovery.userinfo_endpoint, answer.access_token)
            if more.get("sub") != claims["sub"]:
                raise InvalidIdToken("what the provider tells of the user is about another one")
            if claims.get("email", more.get("email")) != more.get("email", claims.get("email")):
                more.pop("email_verified", None)  # of another address than the one that counts
            return {**more, **claims}

    def _tells_all(self, claims: Mapping[str, Any]) -> bool:
        """Whether an ID token has all that there is to know; many providers tell only their userinfo endpoint."""
        # Nobody needs to have this one. Where it is, it counts wherever it is said.
        optional = {"email_verified"} if self.config.authentication_claim == "email" else set()
        return wanted_claims(self.config) | optional <= claims.keys()

    @asynccontextmanager
    async def _asking(self) -> AsyncIterator[None]:
        """Bounds what may be asked at once, and for how long, the time in the queue included. Raises Unavailable."""
        try:
            async with asyncio.timeout(TIMEOUT_S), self._at_once:
                yield
        except TimeoutError as error:
            raise _problem(f"no answer within {TIMEOUT_S:.0f} s") from error

    async def _discovered(self) -> Discovery:
        if self._discovery is not None and time.monotonic() < self._discovery[0]:
            return self._discovery[1]
        issuer = self.config.idp_sso_url.rstrip("/")
        discovery = await self._get(issuer + DISCOVERY, Discovery)
        if discovery.issuer.rstrip("/") != issuer:
            raise _problem(f"it calls itself {discovery.issuer[:200]}, and oidc.idp_sso_url is {issuer}")
        self._discovery = time.monotonic() + KNOWN_FOR_S, discovery
        self._keys_until = 0.0
        return discovery

    async def _redeem(self, discovery: Discovery, code: str, attempt: Attempt) -> TokenAnswer:
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": self.config.redirect_uri}
        if _has_pkce(discovery):
            form["code_verifier"] = attempt.verifier
        headers = {"Accept": "application/json"}
        methods = discovery.token_endpoint_auth_methods_supported or ["client_secret_basic"]
        if "client_secret_basic" in methods and self._secret:
            pair = f"{quote_plus(self.config.client_id)}:{quote_plus(self._secret)}"  # RFC 6749 2.3.1
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        else:
            form["client_id"] = self.config.client_id
            if self._secret:
                form["client_secret"] = self._secret
        status, body = await self._send("POST", discovery.token_endpoint, data=form, headers=headers)
        if status == httpx.codes.OK:
            return _decoded(body, TokenAnswer, discovery.token_endpoint)
        refusal = _decoded(body, TokenRefusal, discovery.token_endpoint) if status < 500 else TokenRefusal()
        if refusal.error == "invalid_grant":
            raise Unauthenticated("the provider does not accept the code of this login; begin again")
        raise _problem(
            f"{discovery.token_endpoint} answered {status} {refusal.error} {refusal.error_description}"[:500]
        )

    async def _verified(self, discovery: Discovery, token: str, attempt: Attempt) -> dict[str, Any]:
        def claims() -> dict[str, Any]:
            return verified_claims(
                token,
                self._keys,
                issuer=discovery.issuer,
                client_id=self.config.client_id,
                nonce=attempt.nonce,
                now=self._clock.now(),
            )

        if time.monotonic() < self._keys_until:
            try:
                return claims()
            except UnknownKey:
                pass  # the provider may have a new one
        self._keys = usable_keys((await self._get(discovery.jwks_uri, KeySetAnswer)).keys)
        self._keys_until = time.monotonic() + KEYS_KNOWN_FOR_S
        return claims()

    async def _user_info(self, endpoint: str, access_token: str) -> dict[str, Any]:
        return await self._get(endpoint, dict[str, Any], {"Authorization": f"Bearer {access_token}"})

    async def _get(self, url: str, kind: type[Answer], headers: Mapping[str, str] | None = None) -> Answer:
        status, body = await self._send("GET", url, headers={"Accept": "application/json", **(headers or {})})
        if status != httpx.codes.OK:
            raise _problem(f"{url} answered {status}")
        return _decoded(body, kind, url)

    async def _send(self, method: str, url: str, **request: Any) -> tuple[int, bytes]:
        try:
            async with self._http.stream(method, url, **request) as response:
                body = b""
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > LARGEST_ANSWER:
                        raise _problem(f"{url} answered with more than {LARGEST_ANSWER} bytes")
                return response.status_code, body
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise _problem(f"{url}: {error or type(error).__name__}") from error


def _has_pkce(discovery: Discovery) -> bool:
    return "S256" in (discovery.code_challenge_methods_supported or ())


def _decoded(body: bytes, kind: type[Answer], url: str) -> Answer:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _problem(f"{url} answered with what is no answer: {error}") from error


def _problem(reason: str) -> Unavailable:
    """Administrators are told what it is; whoever logs in, that it is not them."""
    log.warning("oidc.provider_failed", reason=reason)
    return Unavailable("the login provider does not answer as it should; try again, or tell an administrator")
