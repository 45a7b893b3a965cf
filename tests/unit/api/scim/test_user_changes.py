"""What becomes of a user, where providers and the library that applies their changes differ."""

from __future__ import annotations

from typing import Any

import pytest

from libs.errors import InvalidRequest
from services.api.scim.user_changes import described, patched
from services.api.scim.users import user_of
from tests.scenarios.scim_requests import USER

WORK = {"value": "ann@example.com", "type": "work", "primary": True}
ROW: dict[str, Any] = {
    "username": "ann",
    "external_id": None,
    "active": True,
    "given_display_name": "Ann",
    "name": {"givenName": "Ann"},
    "emails": [WORK],
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
    assert "name" not in after({"op": "Remove", "path": "name", "value": {f"part{each}": "" for each in range(11)}})


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


@pytest.mark.parametrize("address", ["z@example.com", ["z@example.com"], [{"value": "z@example.com"}]])
@pytest.mark.parametrize("verb", ["add", "replace"])
def test_an_address_that_a_filter_selects_keeps_what_is_not_said_of_it(verb: str, address: Any) -> None:
    changed = after({"op": verb, "path": 'emails[type eq "work"]', "value": address})
    assert changed["emails"] == [{"value": "z@example.com", "type": "work", "primary": True}]


def test_an_address_that_is_selected_gets_every_part_that_is_said() -> None:
    more = [{"Value": "z@example.com", "display": "Z"}]
    changed = after({"op": "replace", "path": 'emails[type eq "work"]', "value": more})
    assert changed["emails"] == [{"value": "z@example.com", "display": "Z", "type": "work", "primary": True}]


def test_a_new_address_may_come_alone_for_a_filter() -> None:
    changed = after({"op": "add", "path": 'emails[type eq "home"]', "value": "h@example.com"})
    assert changed["emails"] == [*ROW["emails"], {"value": "h@example.com", "type": "home"}]


HOME = {"value": "home@example.com", "type": "home"}
NEW = 'emails[type eq "new"]'


@pytest.mark.parametrize("verb", ["add", "replace"])
def test_an_address_that_does_not_come_to_be_takes_nothing(verb: str) -> None:
    assert after({"op": verb, "path": f"{NEW}.primary", "value": True})["emails"] == [WORK]


def test_an_address_that_does_not_come_to_be_gives_back_to_the_last_one() -> None:
    home = {"op": "replace", "path": 'emails[type eq "home"].primary', "value": True}
    changed = after(home, {"op": "add", "path": f"{NEW}.primary", "value": "True"}, emails=[WORK, HOME])
    assert changed["emails"] == [{**WORK, "primary": False}, {**HOME, "primary": True}]


def test_what_was_unset_before_is_not_given_back() -> None:
    unset = {"op": "replace", "path": 'emails[type eq "work"].primary', "value": False}
    changed = after(unset, {"op": "add", "path": f"{NEW}.primary", "value": True})
    assert changed["emails"] == [{**WORK, "primary": False}]


def test_parts_of_a_new_address_may_come_before_its_value() -> None:
    said = {"display": "N", "primary": True, "value": "n@example.com"}
    changed = after(*({"op": "add", "path": f"{NEW}.{part}", "value": value} for part, value in said.items()))
    assert changed["emails"] == [{**WORK, "primary": False}, {**said, "type": "new"}]


@pytest.mark.parametrize("path", ["name", 'emails[type eq "work"]'])
def test_names_of_parts_are_paths_and_few(path: str) -> None:
    for value in ({f"part{number}": 1 for number in range(11)}, {f"Value{' ' * number}": 1 for number in range(11)}):
        with pytest.raises(InvalidRequest, match="there may be 10 parts"):
            after({"op": "replace", "path": path, "value": value})
