"""Who logs in, as the claims of the provider say (docs/reference/platform.md 2.5). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from libs.cluster.config import AgentIdentity
from libs.cluster.oidc import OidcConfig
from libs.errors import FailedPrecondition, PermissionDenied

LARGEST_NUMBER: Final = 2**31 - 1
"""Of a POSIX user or group."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """None: the provider is not asked for it, or does not tell."""

    username: str
    display_name: str | None = None
    agent: AgentIdentity | None = None
    groups: frozenset[str] | None = None


def wanted_claims(config: OidcConfig) -> set[str]:
    """What has to be known of somebody."""
    names = {config.authentication_claim, config.display_name_attribute_name, config.groups_attribute_name}
    return {name for name in (*names, *config.agent_claims) if name}


def identity_of(claims: Mapping[str, Any], config: OidcConfig) -> Identity:
    """Raises FailedPrecondition that names a claim, PermissionDenied for an address that nobody has verified."""
    username = _text(claims, config.authentication_claim)
    if not username:
        raise FailedPrecondition(f"the provider does not tell the claim '{config.authentication_claim}'")
    if config.authentication_claim == "email" and claims.get("email_verified") in (False, "false"):
        raise PermissionDenied("the provider has not verified this email address")
    return Identity(
        username=username,
        display_name=_text(claims, config.display_name_attribute_name),
        agent=_agent(claims, config),
        groups=_groups(claims, config.groups_attribute_name),
    )


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    value = claims.get(name) if name else None
    if value is None:
        return None
    if not isinstance(value, str) or not value.isprintable():
        raise FailedPrecondition(f"the claim '{name}' of the provider has to be text")
    return value.strip()


def _agent(claims: Mapping[str, Any], config: OidcConfig) -> AgentIdentity | None:
    """Whoever has none of the claims keeps what an administrator has set."""
    names = [name for name in config.agent_claims if name]
    missing = [name for name in names if claims.get(name) in (None, "")]
    if len(missing) == len(names):
        return None
    if missing:
        raise FailedPrecondition(f"the provider does not tell the claim '{missing[0]}'")
    uid, gid, user, group = config.agent_claims
    return AgentIdentity(
        uid=_number(claims, uid),
        gid=_number(claims, gid),
        user=_text(claims, user) or "",
        group=_text(claims, group) or "",
    )


def _number(claims: Mapping[str, Any], name: str) -> int:
    value = claims[name]
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(LARGEST_NUMBER)):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_NUMBER:
        raise FailedPrecondition(f"the claim '{name}' of the provider has to be a number from 0 to {LARGEST_NUMBER}")
    return value


def _groups(claims: Mapping[str, Any], name: str) -> frozenset[str] | None:
    """Who has no claim at all is in no group: rights must not stay because a provider says nothing any more."""
    if not name:
        return None
    value = claims.get(name)
    if value is None:
        return frozenset()
    entries = [value] if isinstance(value, str) else value
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise FailedPrecondition(f"the claim '{name}' of the provider has to be a list of names of groups")
    return frozenset(entries)
