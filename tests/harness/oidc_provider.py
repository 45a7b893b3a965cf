"""A small provider of OpenID Connect: everybody it knows is logged in without being asked for a password.

It checks what a real one checks (client, redirect, code, PKCE), and can be told to answer with nonsense.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_plus, urlencode

from aiohttp import web
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

CLIENT_ID = "resolute & friends"
CLIENT_SECRET = "s:e c/r%et"
DISCOVERY = "/.well-known/openid-configuration"

Answer = Callable[[], web.Response]


@dataclass
class OidcStandIn:
    user: dict[str, Any] = field(default_factory=lambda: {"sub": "1", "email": "ann@example.com"})
    """Claims of whoever logs in."""
    only_in_user_info: set[str] = field(default_factory=set)
    refusal: str = ""
    """The error that logins end with."""
    token_claims: dict[str, Any] = field(default_factory=dict)
    """Put into ID tokens whatever is right; None leaves a claim out."""
    answers: dict[str, Answer] = field(default_factory=dict)
    """Path -> what it answers instead."""
    discovery: dict[str, Any] = field(default_factory=dict)
    """Put into what it publishes; None leaves a key out."""
    port: int = 0
    asked: list[str] = field(default_factory=list)
    """Paths, in order."""
    authorizations: list[dict[str, str]] = field(default_factory=list)
    """What browsers came with."""
    key: RSAKey | ECKey = field(default_factory=lambda: new_key("first"))
    signing_key: RSAKey | ECKey | None = None
    """When it is not the published one."""
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)
    _tokens: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if (instead := self.answers.get(request.path)) is not None:
            return instead()
        handlers = {
            DISCOVERY: self._publish,
            "/authorize": self._authorize,
            "/token": self._token,
            "/keys": self._keys,
            "/userinfo": self._user_info,
        }
        if (handler := handlers.get(request.path)) is None:
            return web.Response(status=404)
        return await handler(request)

    async def _publish(self, _: web.Request) -> web.Response:
        paths = {
            "authorization_endpoint": "/authorize",
            "token_endpoint": "/token",
            "jwks_uri": "/keys",
            "userinfo_endpoint": "/userinfo",
        }
        document = {
            "issuer": self.issuer,
            **{name: f"{self.issuer}{path}" for name, path in paths.items()},
            "code_challenge_methods_supported": ["plain", "S256"],
            **self.discovery,
        }
        return web.json_response({name: value for name, value in document.items() if value is not None})

    async def _authorize(self, request: web.Request) -> web.Response:
        asked = dict(request.query)
        self.authorizations.append(asked)
        if asked.get("client_id") != CLIENT_ID or asked.get("response_type") != "code":
            return web.Response(status=400, text="who are you?")
        answer = {"state": asked["state"], "session_state": "x"}
        if self.refusal:
            answer |= {"error": self.refusal, "error_description": "no & never"}
        else:
            answer["code"] = secrets.token_urlsafe()
            self._codes[answer["code"]] = asked
        raise web.HTTPFound(f"{asked['redirect_uri']}?{urlencode(answer)}")

    async def _token(self, request: web.Request) -> web.Response:
        form = await request.post()
        if not self._is_client(request, form):
            return web.json_response({"error": "invalid_client"}, status=401)
        asked = self._codes.pop(str(form.get("code")), None)
        if asked is None or form.get("redirect_uri") != asked["redirect_uri"]:
            return web.json_response({"error": "invalid_grant"}, status=400)
        digest = hashlib.sha256(str(form.get("code_verifier")).encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked.get("code_challenge", challenge) != challenge:
            return web.json_response({"error": "invalid_grant"}, status=400)
        access_token, now = secrets.token_urlsafe(), int(time.time())
        self._tokens[access_token] = self.user
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            **{name: value for name, value in self.user.items() if name not in self.only_in_user_info},
            **self.token_claims,
        }
        given = {name: value for name, value in claims.items() if value is not None}
        key = self.signing_key or self.key
        algorithm = "ES256" if isinstance(key, ECKey) else "RS256"
        token = jwt.encode({"alg": algorithm, "kid": self.key.kid}, given, key)
        return web.json_response({"id_token": token, "access_token": access_token, "token_type": "Bearer"})

    def _is_client(self, request: web.Request, form: Any) -> bool:
        scheme, _, coded = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Basic":
            return (form.get("client_id"), form.get("client_secret")) == (CLIENT_ID, CLIENT_SECRET)
        pair = [unquote_plus(part) for part in base64.b64decode(coded).decode().split(":")]
        return pair == [CLIENT_ID, CLIENT_SECRET]

    async def _keys(self, _: web.Request) -> web.Response:
        unknown = [{"kty": "lattice", "kid": "x"}, {"kty": "RSA"}, "no key", {"kty": "EC", "crv": "P-1", "x": "a"}]
        return web.json_response({"keys": [*unknown, self.key.as_dict(private=False)]})

    async def _user_info(self, request: web.Request) -> web.Response:
        claims = self._tokens.get(request.headers.get("Authorization", "").removeprefix("Bearer "))
        return web.Response(status=401) if claims is None else web.json_response(claims)


def new_key(kid: str, *, elliptic: bool = False) -> RSAKey | ECKey:
    if elliptic:
        return ECKey.generate_key("P-256", parameters={"kid": kid, "use": "sig"})
    return RSAKey.generate_key(2048, parameters={"kid": kid, "use": "sig"})


@contextmanager
def oidc_provider() -> Iterator[OidcStandIn]:
    """On a free port of this machine, in a thread, for the duration of the block."""
    provider, started, stop = OidcStandIn(), threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        application = web.Application()
        application.router.add_route("*", "/{rest:.*}", provider.handle)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        provider.port = runner.addresses[0][1]
        started.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    started.wait(10)
    try:
        yield provider
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
