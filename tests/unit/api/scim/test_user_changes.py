"""What becomes of a user, where providers and the library that applies their changes differ."""

from __future__ import annotations

from typing import Any

import pytest

from libs.errors import InvalidRequest
from services.api.scim.user_changes import described, patched
from services.api.scim.users import user_of
from tests.scenarios.scim_requests import USER

ROW = {
    "username": "ann",
    "external_id": None,
    "active": True,
    "given_display_name": "Ann",
    "name": {"givenName": "Ann"},
    "emails": [{"value": "ann@example.com", "type": "work", "primary": True}],
}


def after(*operations: dict[str, Any], **row: Any) -> dict[str, Any]:
    changed = patched(user_of({**ROW, **row}), {"Operations": list(operations)})
    return {"emails": [], **changed.model_dump()}


def test_an_address_without_its_value_is_none() -> None:
    assert after({"op": "remove", "path": 'emails[type eq "work"].value'})["emails"] == []
    assert after({"op": "add", "path": 'emails[type eq "home"].display', "value": "x"})["emails"] == ROW["emails"]


def test_one_address_is_the_primary_one() -> None:
    more = {"op": "add", "path": "emails", "value": [{"value": "b@example.com", "primary": "True"}]}
    assert [each["primary"] for each in after(more)["emails"]] == [False, True]


def test_a_user_who_was_made_with_two_primary_addresses_can_be_changed() -> None:
    """Both were stored as they came, and the library refuses whatever leaves two."""
    two = [{"value": f"{each}@example.com", "primary": True} for each in "ab"]
    changed = after({"op": "replace", "path": "emails.type", "value": "work"}, emails=two)
    assert [each["primary"] for each in changed["emails"]] == [True, False]


def test_a_removal_may_say_what_it_removes() -> None:
    assert "displayName" not in after({"op": "Remove", "path": "displayName", "value": "Ann"})
    assert after({"op": "Remove", "path": "emails", "value": ""})["emails"] == []


def test_null_removes_and_adds_nothing() -> None:
    assert "name" not in after({"op": "replace", "value": {"name": None}})
    assert after({"op": "add", "value": {"emails": None}})["emails"] == ROW["emails"]


@pytest.mark.parametrize("address", ["b@example.com", {"value": "b@example.com"}, [{"Value": "b@example.com"}]])
def test_an_address_may_come_alone(address: Any) -> None:
    assert after({"op": "replace", "path": "emails", "value": address})["emails"] == [{"value": "b@example.com"}]
    assert described({"username": "b", "EMAILS": address}).model_dump()["emails"] == [{"value": "b@example.com"}]


@pytest.mark.parametrize("path", ["active", f"{USER}:active"])
def test_a_value_that_is_equal_and_of_another_type_is_refused(path: str) -> None:
    with pytest.raises(InvalidRequest, match="active: must be true or false"):
        after({"op": "replace", "path": path, "value": 1})
