"""Operations of a PATCH as providers of identities write them."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scim2_models.path import grammar, path

from services.api.scim.errors import InvalidPath, InvalidSyntax
from services.api.scim.models import ScimUser
from services.api.scim.operations import LONGEST_PATH, MOST, Operation, operations
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
    (f'{USER}:emails[value eq "{"x" * 254}"].primary', ("emails", "primary"), f'value eq "{"x" * 254}"'),
    ('emails[value eq "(((((( a b"].primary', ("emails", "primary"), 'value eq "(((((( a b"'),
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
    'a[b eq "\ud800"]',
    f"emails[{'not(' * 5}type eq 1{')' * 5}]",
    f"emails[{'(' * 5}type eq 1{')' * 5}]",
    f"emails[type eq 1{' or type eq 1' * 4}]",
    f'emails[type eq "{"x" * LONGEST_PATH}"]',
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


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the parser of the library is called with."""
    texts: list[str] = []
    parse = grammar._parse_path

    def recorded(text: str) -> Any:
        texts.append(text)
        return parse(text)

    monkeypatch.setattr(path, "_parse_path", recorded)
    return texts


def test_what_is_left_out_is_not_parsed(parsed: list[str]) -> None:
    ignored = {f'{name}[value eq "{number}"]': 1 for number in range(400) for name in ("Title", f"{USER}:addresses")}
    assert [each.attribute for each in read({"Operations": [{"op": "add", "value": {**ignored, "active": 1}}]})] == [
        "active"
    ]
    assert set(parsed) == {"active"}


@pytest.mark.parametrize("name", ["title", "emails", ENTERPRISE])
def test_attributes_are_counted_and_not_operations_alone(name: str, parsed: list[str]) -> None:
    """A body may be of megabytes, and each of its keys a path."""
    value = {f'{name}[value eq "{number}"]': 1 for number in range(MOST // 2 + 1)}
    with pytest.raises(InvalidSyntax, match=f"there may be {MOST} attributes"):
        read({"Operations": [{"op": "add", "value": value}, {"op": "add", "value": value}]})
    assert len(set(parsed)) <= MOST


@pytest.mark.parametrize(
    "text", [f"emails[{'(' * 100}type eq 1{')' * 100}]", f"emails[type eq 1{' or type eq 1' * 20}]"]
)
def test_a_path_that_is_much_work_is_not_parsed(text: str, parsed: list[str]) -> None:
    with pytest.raises(InvalidPath):
        read({"Operations": [{"op": "add", "path": text, "value": 1}]})
    assert parsed == []


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
