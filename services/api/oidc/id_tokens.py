"""ID tokens: whether one is from the provider, for us, for this login and of now (OpenID Connect Core 3.1.3.7). Pure.

Only signatures by keys that the provider publishes count. One made with the client secret proves less: whoever reads
the secret could make tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from joserfc import jwt
from joserfc.errors import BadSignatureError, JoseError, KeyParameterError
from joserfc.jwk import Key, import_key

from libs.errors import Unauthenticated

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"),
    *("EdDSA", "Ed25519"),
)
LEEWAY_S: Final = 60
"""How far the clock of the provider may be off."""


class InvalidIdToken(Unauthenticated):
    def __init__(self, reason: str) -> None:
        super().__init__(f"the ID token of the provider does not count: {reason}")


class UnknownKey(InvalidIdToken):
    """The provider may have other keys by now."""


def usable_keys(entries: Sequence[Any]) -> list[Key]:
    """The keys of a key set; those of kinds that nobody here knows are left out (RFC 7517 5), and so are secrets: what
    is published is none."""
    keys = []
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("kty") == "oct":
            continue
        try:
            keys.append(import_key(entry))
        except (JoseError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return keys


def verified_claims(
    token: str, keys: Sequence[Key], *, issuer: str, client_id: str, nonce: str, now: datetime
) -> dict[str, Any]:
    """Raises InvalidIdToken, or UnknownKey when none of the keys has made it."""
    claims = _signed_claims(token, keys)
    registry = jwt.JWTClaimsRegistry(
        now=int(now.timestamp()),
        leeway=LEEWAY_S,
        iss={"essential": True, "value": issuer},
        sub={"essential": True},
        aud={"essential": True, "value": client_id},
        exp={"essential": True},
        iat={"essential": True},
        nonce={"essential": True, "value": nonce},
    )
    try:
        registry.validate(claims)
    except JoseError as error:
        raise InvalidIdToken(error.description or error.error) from error
    if claims.get("azp", client_id) != client_id:
        raise InvalidIdToken("it was issued to another client")
    return claims


def _signed_claims(token: str, keys: Sequence[Key]) -> dict[str, Any]:
    for key in keys:
        try:
            return jwt.decode(token, key, algorithms=ALGORITHMS).claims
        except (BadSignatureError, KeyParameterError):
            continue
        except (JoseError, ValueError, RecursionError) as error:
            raise InvalidIdToken(f"it cannot be read ({error})") from error
    raise UnknownKey("none of its keys has signed it")
