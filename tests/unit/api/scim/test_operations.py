"""Operations of a PATCH as providers of identities write them."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.api.scim.errors import InvalidPath, InvalidSyntax
from services.api.scim.models import ScimUser
from services.api.scim.operations import MOST, Operation, operations
from tests.scenarios.scim_requests import ENTERPRISE, USER

PATHS: list[tuple[str, tuple[str, ...], str | None]] = [
    ("active", ("active",), None),
    ("ACTIVE", ("ACTIVE",), None),
    ("name.givenName", ("name", "givenName"), None),
    (f"{USER}:active", ("active",), None),
    (f"{USER.lower()}:name.familyname", ("name", "familyname"), None),
    ('emails[type eq "work"].value', ("emails", "value"), 'type eq "work"'),
    ("emails[primary EQ True]", ("emails",), "primary eq true"),
    (r'emails[type eq "a\"\u0041\\"]', ("emails",), r'type eq "a\"A\\"'),
    ('emails[type eq "work" and primary eq true]', ("emails",), 'type eq "work" and primary eq true'),
]
"""As it is sent, the attribute and its part, which values of it."""
NO_PATHS = [
    " ",
    "1",
    "a b",
    "a.b.c",
    "a[",
    "a[]",
    "a[b eq c]",
    'a[b eq "c]',
    'a[b eq "c"]]',
    r'a[b eq "\x"]',
    f'a[b eq "{"x" * 2048}"]',
    'a[b eq "\ud800"]',
    f"a[{'not(' * 100}b eq 1{')' * 100}]",
    "shoeSize",
    "active.x",
    "name.shoeSize",
    f"{USER}:shoeSize",
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
    ({"Operations": [{"op": "add", "path": "active", "value": 1}] * (MOST + 1)}, InvalidSyntax, "there may be 1000"),
]


def read(body: Any) -> list[Operation]:
    return list(operations(body, model=ScimUser, ignored={"title", "addresses"}))


@pytest.mark.parametrize(("path", "parts", "selector"), PATHS, ids=[path for path, _, _ in PATHS])
def test_path_that_providers_use(path: str, parts: tuple[str, ...], selector: str | None) -> None:
    for body in (
        {"Operations": [{"op": "Replace", "path": path, "value": 1}]},
        {"operations": [{"OP": "replace", "value": {path: 1}}]},
    ):
        (found,) = read(body)
        assert (found.verb, found.path.parts, found.value) == ("replace", parts, 1)
        assert found.attribute == parts[0].lower()
        assert (None if found.path.value_filter is None else str(found.path.value_filter)) == selector
        assert found.is_whole == (len(parts) == 1 and selector is None)


@pytest.mark.parametrize(
    "path",
    [
        "title",
        'Addresses[type eq "work"].locality',
        f"{USER}:title",
        ENTERPRISE,
        f"{ENTERPRISE}:manager",
        "urn:x:y",
        'urn:of:somebody:else:roles[primary eq "True"].value',
    ],
)
def test_what_is_not_kept_is_left_out(path: str) -> None:
    assert read({"Operations": [{"op": "add", "path": path, "value": 1}, {"op": "remove", "path": path}]}) == []
    assert read({"Operations": [{"op": "add", "value": {path: {"a": 1}}}]}) == []


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
            {"op": "remove", "path": "emails"},
        ]
    }
    assert [(each.verb, each.path, each.value) for each in read(body)] == [
        ("add", "active", False),
        ("add", "name.familyName", "O"),
        ("remove", "emails", None),
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
