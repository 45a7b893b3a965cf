"""Operations of a PATCH as providers of identities write them."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.api.scim.errors import InvalidPath, InvalidSyntax
from services.api.scim.operations import MOST, Operation, operations
from tests.scenarios.scim_requests import ENTERPRISE, USER

PATHS: list[tuple[str, Operation]] = [
    ("active", Operation("replace", "active", None, "", 1, "active")),
    ("ACTIVE", Operation("replace", "active", None, "", 1, "ACTIVE")),
    ("name.givenName", Operation("replace", "name", None, "givenName", 1, "name.givenName")),
    (f"{USER}:active", Operation("replace", "active", None, "", 1, f"{USER}:active")),
    (f"{USER.lower()}:name.x", Operation("replace", "name", None, "x", 1, f"{USER.lower()}:name.x")),
    (
        'emails[type eq "work"].value',
        Operation("replace", "emails", ("type", "work"), "value", 1, 'emails[type eq "work"].value'),
    ),
    ("emails[primary EQ True]", Operation("replace", "emails", ("primary", "true"), "", 1, "emails[primary EQ True]")),
    ('members[value eq "7"]', Operation("replace", "members", ("value", "7"), "", 1, 'members[value eq "7"]')),
    (
        r'emails[type eq "a\"\u0041\\"]',
        Operation("replace", "emails", ("type", 'a"A\\'), "", 1, r'emails[type eq "a\"\u0041\\"]'),
    ),
    ("$ref", Operation("replace", "$ref", None, "", 1, "$ref")),
    (
        f"{ENTERPRISE}:manager",
        Operation("replace", f"{ENTERPRISE.lower()}:manager", None, "", 1, f"{ENTERPRISE}:manager", is_foreign=True),
    ),
]
NO_PATHS = [
    " ",
    "1",
    "a b",
    "a.b.c",
    "a[",
    "a[]",
    "a[b eq c]",
    'a[b ne "c"]',
    'a[b eq "c]',
    'a[b eq "c"]]',
    r'a[b eq "\x"]',
    r'a[b eq "\ud800"]',
    r'a[b eq "\u0000"]',
    f'a[b eq "{"x" * 1025}"]',
    'a[b eq "c"] and d',
    "a.",
    ".a",
    "a\n",
    "a\x00",
]
REFUSED: list[tuple[Any, type[Exception], str]] = [
    ({}, InvalidSyntax, "Operations: a list"),
    ({"Operations": []}, InvalidSyntax, "Operations: a list"),
    ({"Operations": {"op": "add"}}, InvalidSyntax, "Operations: a list"),
    ({"Operations": [None]}, InvalidSyntax, "each must be an object"),
    ({"Operations": ["add"]}, InvalidSyntax, "each must be an object"),
    ({"Operations": [{}]}, InvalidSyntax, "op: must be"),
    ({"Operations": [{"op": "move", "path": "a"}]}, InvalidSyntax, "op: must be"),
    ({"Operations": [{"op": ["add"], "path": "a"}]}, InvalidSyntax, "op: must be"),
    ({"Operations": [{"op": "add", "path": 1}]}, InvalidPath, "path: must be a text"),
    ({"Operations": [{"op": "remove"}]}, InvalidPath, "required for op remove"),
    ({"Operations": [{"op": "remove", "path": USER}]}, InvalidPath, "required for op remove"),
    ({"Operations": [{"op": "add", "value": True}]}, InvalidSyntax, "value: must be an object"),
    ({"Operations": [{"op": "add", "path": "", "value": []}]}, InvalidSyntax, "value: must be an object"),
    ({"Operations": [{"op": "add", "path": "a", "value": 1}] * (MOST + 1)}, InvalidSyntax, "there may be 1000"),
]


def read(body: Any) -> list[Operation]:
    return list(operations(body, schema=USER))


@pytest.mark.parametrize(("path", "expected"), PATHS, ids=[path for path, _ in PATHS])
def test_path_that_providers_use(path: str, expected: Operation) -> None:
    assert read({"Operations": [{"op": "Replace", "path": path, "value": 1}]}) == [expected]
    if path.count("[") == 0:
        assert read({"operations": [{"OP": "replace", "value": {path: 1}}]}) == [expected]


@pytest.mark.parametrize("path", NO_PATHS)
def test_path_that_is_none(path: str) -> None:
    with pytest.raises(InvalidPath, match="path: "):
        read({"Operations": [{"op": "remove", "path": path}]})


@pytest.mark.parametrize(("body", "kind", "says"), REFUSED, ids=[says for _, _, says in REFUSED])
def test_operations_that_are_refused(body: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind) as refused:
        read(body)
    assert says in str(refused.value)


def test_an_object_is_an_operation_for_each_of_its_attributes() -> None:
    body = {
        "Operations": [
            {"op": "add", "value": {"active": False, "name.familyName": "O"}},
            {"op": "remove", "path": "title"},
        ]
    }
    assert [(each.verb, each.attribute, each.sub, each.value) for each in read(body)] == [
        ("add", "active", "", False),
        ("add", "name", "familyName", "O"),
        ("remove", "title", "", None),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
LIKE_ONE = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "Remove", "REPLACE"]) | JSON},
    optional={"path": st.text() | st.from_regex(r"[a-z$]{1,5}(\[.{0,12}\])?(\..{0,4})?") | JSON, "value": JSON},
)


@given(st.dictionaries(st.text(), JSON, max_size=2) | st.fixed_dictionaries({"Operations": st.lists(LIKE_ONE) | JSON}))
@example({"Operations": [{"op": "add", "path": 'a[b eq "' + "\\" * 100_000, "value": 1}]})
@example({"Operations": [{"op": "add", "path": 'a[b eq "\ud800"]', "value": 1}]})
@example({"Operations": [{"op": "add", "value": {"": 1}}]})
def test_no_body_does_anything_but_that(body: dict[str, Any]) -> None:
    with contextlib.suppress(InvalidPath, InvalidSyntax):
        assert all(each.attribute == each.attribute.lower() for each in read(body))
