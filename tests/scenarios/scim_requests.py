"""Bodies of requests as Okta and Microsoft Entra ID send them, and what becomes of the user or the group.

Source: the pages of both about writing a SCIM endpoint, and RFC 7644 3.5.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

USER: Final = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP: Final = "urn:ietf:params:scim:schemas:core:2.0:Group"
ENTERPRISE: Final = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
PATCH: Final = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


@dataclass(frozen=True)
class Change:
    """Operations of a PATCH of the user of ``described``; ``then`` are attributes afterwards, None for no more."""

    name: str
    operations: list[dict[str, Any]]
    then: dict[str, Any]


def described(user_name: str, **more: Any) -> dict[str, Any]:
    """A user as Okta makes it."""
    return {
        "schemas": [USER],
        "userName": user_name,
        "name": {"givenName": "Ann", "familyName": "Other"},
        "emails": [{"primary": True, "value": f"{user_name}@example.com", "type": "work"}],
        "displayName": f"Ann Other {user_name}",
        "locale": "en-US",
        "externalId": f"00u{user_name}",
        "groups": [],
        "password": "1mz050nq",
        "active": True,
        **more,
    }


def by_entra(user_name: str) -> dict[str, Any]:
    return {
        "schemas": [USER, ENTERPRISE],
        "externalId": f"guid-{user_name}",
        "userName": user_name,
        "active": True,
        "displayName": "Bén Ötker",
        "emails": [{"primary": True, "type": "work", "value": f"{user_name}@example.com"}],
        "meta": {"resourceType": "User"},
        "name": {"formatted": "Bén Ötker", "familyName": "Ötker", "givenName": "Bén"},
        "roles": [],
        "title": "Researcher",
        ENTERPRISE: {"department": "R & D", "manager": {"value": "guid-of-somebody"}},
    }


CHANGES: Final = (
    Change("Okta deactivates", [{"op": "replace", "value": {"active": False}}], {"active": False}),
    Change(
        "Entra deactivates, with a capital and a text",
        [{"op": "Replace", "path": "active", "value": "False"}],
        {"active": False},
    ),
    Change(
        "Entra of old, with a list of one",
        [{"op": "Replace", "path": "active", "value": [{"$ref": None, "value": "False"}]}],
        {"active": False},
    ),
    Change("Entra adds what is there", [{"op": "Add", "path": "active", "value": "True"}], {"active": True}),
    Change(
        "Entra changes several at once",
        [
            {"op": "Replace", "path": "displayName", "value": "Somebody Else"},
            {"op": "Replace", "path": "name.familyName", "value": "Else"},
            {"op": "Replace", "path": 'emails[type eq "work"].value', "value": "new@example.com"},
            {"op": "Add", "path": f"{ENTERPRISE}:department", "value": "Sales"},
            {"op": "Add", "path": "title", "value": "Chief"},
            {"op": "Add", "path": 'addresses[type eq "work"].locality', "value": "Ulm"},
        ],
        {
            "displayName": "Somebody Else",
            "name": {"givenName": "Ann", "familyName": "Else"},
            "emails": [{"primary": True, "value": "new@example.com", "type": "work"}],
        },
    ),
    Change(
        "Entra names parts in an object",
        [{"op": "Add", "value": {"name.givenName": "Anna", f"{ENTERPRISE}:employeeNumber": "7"}}],
        {"name": {"givenName": "Anna", "familyName": "Other"}},
    ),
    Change(
        "an address of another kind is added",
        [{"op": "add", "path": 'emails[type eq "home"].value', "value": "home@example.com"}],
        {
            "emails": [
                {"primary": True, "value": "*", "type": "work"},
                {"type": "home", "value": "home@example.com"},
            ]
        },
    ),
    Change(
        "addresses are replaced",
        [{"op": "replace", "path": "emails", "value": [{"value": "only@example.com"}]}],
        {"emails": [{"value": "only@example.com"}]},
    ),
    Change("addresses of a kind go", [{"op": "remove", "path": 'emails[type eq "work"]'}], {"emails": None}),
    Change("all addresses go", [{"op": "remove", "path": "emails"}], {"emails": None}),
    Change(
        "a path may begin with the schema",
        [{"op": "replace", "path": f"{USER}:name", "value": {"familyName": "New"}}],
        {"name": {"givenName": "Ann", "familyName": "New"}},
    ),
    Change("a part of a name goes", [{"op": "remove", "path": "name.givenName"}], {"name": {"familyName": "Other"}}),
    Change("names go by any case", [{"op": "replace", "path": "DISPLAYNAME", "value": "X Y"}], {"displayName": "X Y"}),
    Change("the display name goes", [{"op": "remove", "path": "displayName"}], {"displayName": None}),
    Change("the external id changes", [{"op": "replace", "path": "externalId", "value": "z"}], {"externalId": "z"}),
    Change(
        "Okta says again what is read-only",
        [{"op": "replace", "value": {"id": "whatever", "schemas": [USER], "active": True}}],
        {"active": True},
    ),
)

REFUSED: Final = (
    ("no operations", {"schemas": [PATCH]}, "invalidSyntax"),
    ("operations that are none", {"Operations": "x"}, "invalidSyntax"),
    ("an operation that is none", {"Operations": [1]}, "invalidSyntax"),
    ("an unknown op", {"Operations": [{"op": "move", "path": "active"}]}, "invalidSyntax"),
    ("no op", {"Operations": [{"path": "active", "value": True}]}, "invalidSyntax"),
    ("an attribute that there is not", {"Operations": [{"op": "add", "path": "shoeSize", "value": 1}]}, "invalidPath"),
    ("a path that is none", {"Operations": [{"op": "add", "path": "name[[", "value": 1}]}, "invalidPath"),
    ("a path that is no text", {"Operations": [{"op": "add", "path": 7, "value": 1}]}, "invalidPath"),
    ("a part of active", {"Operations": [{"op": "add", "path": "active.x", "value": True}]}, "invalidPath"),
    ("a removal of everything", {"Operations": [{"op": "remove"}]}, "invalidPath"),
    ("a value that is no object", {"Operations": [{"op": "add", "value": 3}]}, "invalidSyntax"),
    ("active as a number", {"Operations": [{"op": "replace", "path": "active", "value": 1}]}, "invalidValue"),
    ("active removed", {"Operations": [{"op": "remove", "path": "active"}]}, "invalidValue"),
    ("the user name removed", {"Operations": [{"op": "remove", "path": "userName"}]}, "invalidValue"),
    ("a name as a text", {"Operations": [{"op": "replace", "path": "name", "value": "x"}]}, "invalidValue"),
    ("addresses as a number", {"Operations": [{"op": "replace", "path": "emails", "value": [1]}]}, "invalidValue"),
    ("half a character", {"Operations": [{"op": "replace", "path": "displayName", "value": "\ud800"}]}, None),
    ("a NUL", {"Operations": [{"op": "replace", "path": "displayName", "value": "\0"}]}, None),
    ("a long text", {"Operations": [{"op": "replace", "path": "displayName", "value": "x" * 1025}]}, "invalidValue"),
)
"""What, body of a PATCH of a user, scimType of the refusal (None for any)."""
