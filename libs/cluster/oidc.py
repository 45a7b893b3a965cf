"""Login at an OpenID Connect provider: what administrators say of it (docs/reference/platform.md 2.5). Pure."""

from __future__ import annotations

from typing import Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from libs.errors import InvalidRequest

CALLBACK: Final = "/oidc/callback"
SECRET_VARIABLE: Final = "DET_OIDC_CLIENT_SECRET"  # noqa: S105  (the name of a variable)


class OidcConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    enabled: bool = False
    """Whether users can log in at the provider."""
    provider: str = ""
    """Its name, which users see and choose it by."""
    idp_sso_url: str = ""
    """Its issuer, below which ``/.well-known/openid-configuration`` tells the rest."""
    idp_recipient_url: str = ""
    """Where users find this installation; the provider has to know the address with ``/oidc/callback`` behind it."""
    client_id: str = ""
    """As what the provider knows this installation."""
    client_secret: str = ""
    """What it proves that with; ``DET_OIDC_CLIENT_SECRET`` in the environment of the api wins."""
    authentication_claim: str = "email"
    """The claim that is the name of the user here."""
    scim_authentication_attribute: Literal["userName"] = "userName"
    """What of a user it is compared with."""
    auto_provision_users: bool = False
    """Make the user at the first login; otherwise an administrator or SCIM does, before it."""
    groups_attribute_name: str = ""
    """A claim with names of groups: at each login the user becomes member of these and of no others."""
    display_name_attribute_name: str = ""
    """A claim that becomes the display name."""
    agent_uid_attribute_name: str = ""
    """A claim with the number of the POSIX user that tasks run as. All four of these, or none."""
    agent_gid_attribute_name: str = ""
    """One with the number of its group."""
    agent_user_name_attribute_name: str = ""
    """One with its name."""
    agent_group_name_attribute_name: str = ""
    """One with the name of its group."""
    always_redirect: bool = False
    """Whether browsers that have to log in go to the provider without being asked."""
    exclude_groups_scope: bool = False
    """Do not ask for the scope ``groups``, which some providers refuse."""

    @property
    def base_url(self) -> str:
        """Of this installation, without a slash at its end."""
        return self.idp_recipient_url.rstrip("/").removesuffix(CALLBACK).rstrip("/")

    @property
    def redirect_uri(self) -> str:
        """Where the provider sends browsers back to."""
        return self.base_url + CALLBACK

    @property
    def sso_url(self) -> str:
        """Where a login begins."""
        return f"{self.base_url}/oidc/sso"

    @property
    def agent_claims(self) -> tuple[str, str, str, str]:
        return (
            self.agent_uid_attribute_name,
            self.agent_gid_attribute_name,
            self.agent_user_name_attribute_name,
            self.agent_group_name_attribute_name,
        )

    @property
    def scopes(self) -> str:
        return "openid profile email" if self.exclude_groups_scope else "openid profile email groups"


def check_oidc(config: OidcConfig) -> None:
    """Raises InvalidRequest that names the key."""
    if not config.enabled:
        return
    for name in ("provider", "client_id", "authentication_claim", "idp_sso_url", "idp_recipient_url"):
        if not getattr(config, name).strip():
            raise InvalidRequest(f"oidc.{name}: is needed when oidc.enabled is true")
    for name in ("idp_sso_url", "idp_recipient_url"):
        if not _is_web_address(getattr(config, name)):
            raise InvalidRequest(f"oidc.{name}: must be an address such as https://login.example.com")
    if any(config.agent_claims) and not all(config.agent_claims):
        raise InvalidRequest(
            "oidc.agent_uid_attribute_name: give all four of agent_uid_attribute_name, agent_gid_attribute_name, "
            "agent_user_name_attribute_name and agent_group_name_attribute_name, or none"
        )


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
            and url.isascii()
            and url.isprintable()
            and " " not in url
            and not (parts.query or parts.fragment or parts.username)
        )
    except ValueError:
        return False
