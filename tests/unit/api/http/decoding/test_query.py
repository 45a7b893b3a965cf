"""Query strings and path parameters: repeated, dotted, in either spelling, and refused in words when wrong."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libs.errors import InvalidRequest
from services.api.http.decoding.query import QueryDecoder, parse_path_int, parse_path_text
from tests.unit.api.http.shapes import Filter, Search, State

decode = QueryDecoder(Search)

ACCEPTED = [
    ("", Search()),
    ("limit=5", Search(limit=5)),
    ("limit=5&limit=6", Search(limit=6)),
    ("limit=", Search()),
    ("limit", Search()),
    ("limit=-2", Search(limit=-2)),
    ("nobody=knows&pretty", Search()),
    ("userIds=1&userIds=2", Search(user_ids=[1, 2])),
    ("user_ids=1&userIds=2", Search(user_ids=[1, 2])),
    ("names=a%20b&names=c%2Bd&names=", Search(names=["a b", "c+d", ""])),
    ("states=STATE_ACTIVE&states=4", Search(states=[State.ACTIVE, State.PAUSED])),
    ("orderBy=1", Search(order_by=State.ACTIVE)),
    ("archived=true", Search(archived=True)),
    ("archived=False", Search(archived=False)),
    ("experimentIdFilter.incl=5&experimentIdFilter.incl=6", Search(experiment_id_filter=Filter(incl=[5, 6]))),
    ("experiment_id_filter.gt=5", Search(experiment_id_filter=Filter(gt=5))),
    ("experimentIdFilter=5", Search()),
    ("limit.more=5", Search()),
    ("after=2024-05-01T10%3A00%3A00Z", Search(after=datetime(2024, 5, 1, 10, tzinfo=UTC))),
    ("threshold=-Infinity", Search(threshold=float("-inf"))),
    ("threshold=1.5e3", Search(threshold=1500.0)),
    ("size=9223372036854775807", Search(size="9223372036854775807")),
    ("name=%C3%A4", Search(name="ä")),
]


@pytest.mark.parametrize(("query", "expected"), ACCEPTED)
def test_queries_as_clients_write_them(query: str, expected: Search) -> None:
    assert decode(query.encode()) == expected


REFUSED = [
    (b"limit=x", "limit: expected `int`"),
    (b"limit=99999999999", "limit: expected a 32-bit integer"),
    (b"userIds=1&userIds=x", "userIds[1]: expected `int`"),
    (b"states=ACTIVE", "states[0]: expected one of STATE_UNSPECIFIED"),
    (b"archived=yes", "archived: expected true or false, got 'yes'"),
    (b"experimentIdFilter.gt=x", "experimentIdFilter.gt: expected `int | null`"),
    (b"after=yesterday", "after: "),
    (b"name=%00", "name: expected text without NUL"),
    (b"limit=1&name=%ff", "name: the text is not UTF-8"),
    (b"name=\xff", "name: the text is not UTF-8"),
    (b"%ff=name", "the query string is not UTF-8"),
    (b"a&" * 20_000, "more than 10000 parameters"),
]


@pytest.mark.parametrize(("query", "words"), REFUSED)
def test_wrong_queries_name_the_parameter(query: bytes, words: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        decode(query)
    assert words in str(refusal.value)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                [field.encode_name for field in msgspec.structs.fields(Search)] + ["experimentIdFilter.gt"]
            ),
            st.text(st.characters(max_codepoint=127), max_size=6) | st.integers().map(str),
        ),
        max_size=6,
    )
)
def test_any_query_gives_a_value_or_a_refusal(pairs: list[tuple[str, str]]) -> None:
    query = "&".join(f"{name}={text}" for name, text in pairs).encode()
    with contextlib.suppress(InvalidRequest):
        assert isinstance(decode(query), Search)


@pytest.mark.parametrize("text", ["x", "", "1.0", "+1", " 1", "1_000", "٣", "2147483648", "9" * 10_000])
def test_path_integers_are_plain_32_bit_digits(text: str) -> None:
    with pytest.raises(InvalidRequest, match="experimentId: expected a 32-bit integer"):
        parse_path_int("experimentId", text)


def test_path_parameters() -> None:
    assert parse_path_int("experimentId", "-7") == -7
    assert parse_path_text("name", "a b") == "a b"
    with pytest.raises(InvalidRequest, match="name: expected text without NUL"):
        parse_path_text("name", "a\0")


def test_a_query_is_described_by_a_struct() -> None:
    with pytest.raises(TypeError):
        QueryDecoder(dict)
