"""Filters of lists as providers of identities write them."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.api.scim.errors import InvalidFilter
from services.api.scim.filters import LONGEST, Equals, parse
from tests.scenarios.scim_requests import USER

ATTRIBUTES = ("userName", "externalId", "emails.value")

UNDERSTOOD = [
    ("", None),
    (" \t\n", None),
    ('userName eq "ann"', Equals("username", "ann")),
    ('  USERNAME  EQ  "Ann"  ', Equals("username", "Ann")),
    ('userName eq ""', Equals("username", "")),
    ('emails.value eq "a@b.c"', Equals("emails.value", "a@b.c")),
    (f'{USER}:userName eq "ann"', Equals("username", "ann")),
    (f'{USER.upper()}:externalId eq "1"', Equals("externalid", "1")),
    (r'userName eq "a\"b\\c"', Equals("username", 'a"b\\c')),
    (r'userName eq "\u0041\u00e9"', Equals("username", "Aé")),
    (r'userName eq "\ud83d\ude00"', Equals("username", "😀")),
    ('userName eq "a eq b"', Equals("username", "a eq b")),
    ('userName eq "x) or (1 eq 1"', Equals("username", "x) or (1 eq 1")),
    ('(userName eq"ann")', Equals("username", "ann")),
]
REFUSED = [
    ("userName", "only one comparison"),
    ("userName eq", "only one comparison"),
    ("userName eq ann", "only one comparison"),
    ("userName eq 'ann'", "only one comparison"),
    ('userName eq "ann', "only one comparison"),
    ('userName co "ann"', "only one comparison"),
    ("userName pr", "only one comparison"),
    ('userName eq "a" and active eq true', "only one comparison"),
    ('not (userName eq "a")', "only one comparison"),
    ('userName eq "a" ; DROP TABLE users', "only one comparison"),
    ('1userName eq "a"', "only one comparison"),
    ('title eq "a"', "cannot search by title, only by userName, externalId, emails.value"),
    (f'{USER} eq "a"', "cannot search by"),
    ('urn:other:User:userName eq "a"', "cannot search by"),
    (r'userName eq "\x41"', "only one comparison"),
    (r'userName eq "\ud83d"', "no name can have"),
    ('userName eq "a\nb"', "only one comparison"),
    ("userName eq true", "only one comparison"),
    ("not (" * 400 + 'userName eq "a"' + ")" * 400, "only one comparison"),
    (r'userName eq "\u0000"', "no name can have"),
    (f'userName eq "{"a" * LONGEST}"', "only one comparison"),
]


@pytest.mark.parametrize(("text", "expected"), UNDERSTOOD)
def test_filter_that_providers_use(text: str, expected: Equals | None) -> None:
    assert parse(text, ATTRIBUTES, schema=USER) == expected


@pytest.mark.parametrize(("text", "says"), REFUSED, ids=lambda value: str(value)[:40])
def test_filter_that_is_refused(text: str, says: str) -> None:
    with pytest.raises(InvalidFilter) as refused:
        parse(text, ATTRIBUTES, schema=USER)
    assert says in str(refused.value)


@given(st.text() | st.from_regex(r'[a-zA-Z:.$]{0,12} {0,2}eq {0,2}"?.{0,12}"?', fullmatch=True))
@example("userName eq " + '"' * LONGEST)
@example('userName eq "' + "\\" * (LONGEST - 20))
@example('userName eq "\ud800"')
@example('u\u017ferName eq "a"')
@example("(" * 1000 + 'userName eq "a"' + ")" * 1000)
def test_no_text_does_anything_but_that(text: str) -> None:
    with contextlib.suppress(InvalidFilter):
        found = parse(text, ATTRIBUTES, schema=USER)
        assert found is None or found.attribute in {name.lower() for name in ATTRIBUTES}


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=100), st.sampled_from(ATTRIBUTES))
def test_any_value_is_found_again(value: str, attribute: str) -> None:
    for literal in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        assert parse(f"{attribute} eq {literal}", ATTRIBUTES, schema=USER) == Equals(attribute.lower(), value)
