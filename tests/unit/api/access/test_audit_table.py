"""Everything that changes something is in the audit log, or a row says why it is not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from libs.config.secrets import CREDENTIALS
from services.api.access.audit_table import EXEMPT, VALUES, audit_rule
from services.api.access.permission_table import PERMISSIONS
from services.api.http.audited_call import details_of
from services.api.routes.table import all_routes
from services.api.wire.users.users import NewUser, PatchUser, PostUserRequest

CHANGING = sorted(call for call in PERMISSIONS if call.split()[0] not in {"GET", "HEAD"})
ROUTES = {f"{route.method} {route.path}": route for route in all_routes()}


@pytest.mark.parametrize("call", CHANGING)
def test_a_call_that_changes_something_is_recorded_or_says_why_not(call: str) -> None:
    rule = ROUTES[call].audit
    if call in EXEMPT:
        assert rule is None
        assert len(EXEMPT[call]) > 10, "a reason is a sentence"
    else:
        assert rule is not None
        assert rule.action == call


def test_every_row_is_about_a_call_that_exists() -> None:
    assert (EXEMPT.keys() | VALUES.keys()) - set(CHANGING) == set()
    assert EXEMPT.keys() & VALUES.keys() == set()


def test_what_administrators_and_users_end_is_never_exempt() -> None:
    grave = [call for call in CHANGING if call.startswith("DELETE") or call.endswith(("/kill", "/cancel", "/rm"))]
    about = (
        "/users/{userId}",
        "/tokens",
        "/workspaces/{id}",
        "/templates/",
        "/agents/",
        "/master/config",
        "/job-queues",
    )
    wanted = [*grave, *(call for call in CHANGING if any(part in call for part in about))]
    own_pages = {"POST /api/v1/workspaces/{id}/pin", "POST /api/v1/workspaces/{id}/unpin"}
    assert len(wanted) > 25
    assert [call for call in wanted if audit_rule(*call.split()) is None and call not in own_pages] == []


def _fields(kind: Any) -> dict[str, Any]:
    return {field.name: field for field in msgspec.structs.fields(kind)}


@pytest.mark.parametrize("call", sorted(VALUES))
def test_recorded_values_are_fields_of_the_body_and_no_secrets(call: str) -> None:
    for name in VALUES[call]:
        first, *rest = name.split(".")
        known = _fields(ROUTES[call].body)
        assert first in known
        if rest and isinstance(known[first].type, type):
            assert rest[0] in _fields(known[first].type)
        assert name.rpartition(".")[2] not in {*CREDENTIALS, "password", "token", "config"}


def test_a_password_is_said_to_be_new_and_not_what_it_is() -> None:
    body = PostUserRequest(user=NewUser(username="ann", admin=True), password="very-secret")
    details = details_of(body, VALUES["POST /api/v1/users"])
    assert details == {
        "user.username": "ann",
        "user.admin": True,
        "user.active": False,
        "user.remote": False,
        "others": ["password"],
    }
    assert details_of(PatchUser(password="very-secret"), VALUES["PATCH /api/v1/users/{userId}"]) == {
        "others": ["password"]
    }
    assert details_of("very-secret", ()) == {}
