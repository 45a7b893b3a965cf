"""What a browser keeps of a login, and what claims may say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from libs.cluster.oidc import OidcConfig, check_oidc
from libs.errors import FailedPrecondition, InvalidRequest
from services.api.oidc.attempts import LIFETIME, begin_attempt, resume_attempt
from services.api.oidc.identity import identity_of

NOW = datetime(2030, 1, 1, tzinfo=UTC)
COMPLETE = {
    "enabled": True,
    "provider": "P",
    "client_id": "c",
    "idp_sso_url": "https://login.example.com/realm/",
    "idp_recipient_url": "https://here.example.com/oidc/callback",
}


def test_an_attempt_comes_back_as_it_was_until_it_is_too_old() -> None:
    attempt = begin_attempt(secret="secret", relay_state="/det/ä?x=1.2;3", now=NOW)
    back = resume_attempt(attempt.cookie, state=attempt.state, now=NOW + LIFETIME - timedelta(seconds=1))
    assert (back.relay_state, back.nonce, back.verifier) == (attempt.relay_state, attempt.nonce, attempt.verifier)
    for moment in (NOW + LIFETIME, NOW - timedelta(seconds=1)):
        with pytest.raises(FailedPrecondition):
            resume_attempt(attempt.cookie, state=attempt.state, now=moment)


def test_what_the_provider_sees_does_not_tell_what_the_browser_keeps() -> None:
    attempt = begin_attempt(secret="secret", relay_state="", now=NOW)
    other = begin_attempt(secret="another", relay_state="", now=NOW)
    seen = {attempt.state, attempt.nonce, attempt.challenge}
    assert len({*seen, attempt.verifier, other.state, other.nonce, other.verifier}) == 7
    assert all("secret" not in each for each in seen)


@pytest.mark.parametrize("cookie", ["", "a", "a.b", "a.1.!", "a.1.b.c", "a.99999999999999999999.", "a.-1.", "a.1_0."])
def test_a_cookie_that_is_none_is_refused(cookie: str) -> None:
    with pytest.raises(FailedPrecondition):
        resume_attempt(cookie, state="", now=NOW)


@pytest.mark.parametrize("email", ["\ud800", "a\0b", "a\nb", 7, ["a"], "", None])
def test_a_claim_that_is_no_text_is_named(email: object) -> None:
    with pytest.raises(FailedPrecondition, match="email"):
        identity_of({"email": email}, OidcConfig())


def test_a_configuration_knows_its_addresses() -> None:
    config = OidcConfig(**COMPLETE)
    check_oidc(config)
    assert config.redirect_uri == "https://here.example.com/oidc/callback"
    assert config.sso_url == "https://here.example.com/oidc/sso"


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"provider": " "}, "oidc.provider"),
        ({"client_id": ""}, "oidc.client_id"),
        ({"authentication_claim": ""}, "oidc.authentication_claim"),
        ({"idp_sso_url": "login.example.com"}, "oidc.idp_sso_url"),
        ({"idp_sso_url": "https://[x"}, "oidc.idp_sso_url"),
        ({"idp_sso_url": "https://a:0"}, "oidc.idp_sso_url"),
        ({"idp_recipient_url": ""}, "oidc.idp_recipient_url"),
        ({"idp_recipient_url": "https://here?x"}, "oidc.idp_recipient_url"),
        ({"agent_uid_attribute_name": "uid"}, "oidc.agent_uid_attribute_name"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused_at_the_start(wrong: dict[str, str], key: str) -> None:
    with pytest.raises(InvalidRequest, match=key):
        check_oidc(OidcConfig(**{**COMPLETE, **wrong}))
    check_oidc(OidcConfig(**{**COMPLETE, **wrong, "enabled": False}))
