"""Bodies in every spelling clients send become the same values, and wrong ones are refused in words."""

from __future__ import annotations

import contextlib
import json
import math
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from libs.errors import InvalidRequest
from services.api.http.decoding.body import BodyDecoder
from tests.unit.api.http.shapes import Branch, Everything, State

decode = BodyDecoder(Everything)
LARGE = b" " * (300 * 1024)  # too large for the fast path


class Accepted(NamedTuple):
    name: str
    body: str
    expected: Everything


ACCEPTED = [
    Accepted("nothing at all", "", Everything()),
    Accepted("an empty object", "{}", Everything()),
    Accepted("null", "null", Everything()),
    Accepted("white space", " \n", Everything()),
    Accepted("camelCase", '{"trialId": 7, "userName": "x"}', Everything(trial_id=7, user_name="x")),
    Accepted("snake_case", '{"trial_id": 7, "user_name": "x"}', Everything(trial_id=7, user_name="x")),
    Accepted("snake_case inside", '{"branch": {"leaf_count": 3}}', Everything(branch=Branch(leaf_count=3))),
    Accepted("snake_case in lists", '{"branches": [{"leaf_count": 3}]}', Everything(branches=[Branch(leaf_count=3)])),
    Accepted("keys spelled with escapes", '{"trial\\u005fid": 7}', Everything(trial_id=7)),
    Accepted("free-form keys stay", '{"config": {"trial_id": 7}}', Everything(config={"trial_id": 7})),
    Accepted("free-form null stays", '{"config": {"a": null}}', Everything(config={"a": None})),
    Accepted("unknown keys", '{"nobody": [1], "branch": {"knows": 1}}', Everything(branch=Branch())),
    Accepted("null scalar", '{"trialId": null, "userName": null, "archived": null}', Everything()),
    Accepted("null list, map, enum", '{"names": null, "sizeByFile": null, "state": null}', Everything()),
    Accepted("null message", '{"branch": null}', Everything()),
    Accepted("null optional", '{"optionalText": null}', Everything(optional_text=UNSET)),
    Accepted("null that means something", '{"maxSlots": null}', Everything(max_slots=None)),
    Accepted("enum by number", '{"state": 4, "states": [1, "STATE_PAUSED"]}', Everything(state=State.PAUSED, states=[State.ACTIVE, State.PAUSED])),  # noqa: E501
    Accepted("int as text", '{"trialId": "7"}', Everything(trial_id=7)),
    Accepted("int as float", '{"trialId": 7.0}', Everything(trial_id=7)),
    Accepted("int64 as number", '{"size": 5, "sizeByFile": {"a_b": 6}}', Everything(size="5", size_by_file={"a_b": "6"})),  # noqa: E501
    Accepted("largest int64", '{"size": "9223372036854775807"}', Everything(size="9223372036854775807")),
    Accepted("smallest int64", '{"size": -9223372036854775808}', Everything(size="-9223372036854775808")),
    Accepted("float by name", '{"loss": "Infinity", "best": "nan"}', Everything(loss=math.inf, best="NaN")),
    Accepted("float as int", '{"loss": 3}', Everything(loss=3.0)),
    Accepted("base64", '{"content": "_-8"}', Everything(content=b"\xff\xef")),
    Accepted("moment", '{"startTime": "2024-05-01T12:00:00+02:00"}', Everything(start_time=datetime(2024, 5, 1, 10, tzinfo=UTC))),  # noqa: E501
    Accepted("long integer in free form", '{"config": {"a": 36893488147419103232}}', Everything(config={"a": 2.0**65})),
    Accepted("text like an escape", '{"userName": "\\\\u0000"}', Everything(user_name="\\u0000")),
]  # fmt: skip


@pytest.mark.parametrize("padding", [b"", LARGE], ids=["fast path", "slow path"])
@pytest.mark.parametrize("case", ACCEPTED, ids=[case.name for case in ACCEPTED])
def test_every_spelling_gives_the_same_value(case: Accepted, padding: bytes) -> None:
    assert decode(case.body.encode() + padding) == case.expected


def test_nan_by_the_name_the_client_uses() -> None:
    assert math.isnan(decode(b'{"loss": "Nan"}').loss)


REFUSED = [
    ("not JSON", b"{", "not JSON"),
    ("bare NaN", b'{"loss": NaN}', "not JSON"),
    ("not UTF-8", b'{"userName": "\xff"}', "not JSON"),
    ("half a surrogate pair", b'{"userName": "\\ud800"}', "not JSON"),
    ("array for object", b"[]", "body: expected `object`"),
    ("text for int", b'{"trialId": "x"}', "trialId: expected `int`, got `str`"),
    ("bool for int", b'{"trialId": true}', "trialId: expected `int`, got `bool`"),
    ("fraction for int", b'{"trialId": 1.5}', "trialId: expected `int`"),
    ("int32 range", b'{"trialId": 2147483648}', "trialId: expected a 32-bit integer, got 2147483648"),
    ("int32 range of Int32", b'{"runId": 2147483648}', "runId: expected a 32-bit integer"),
    ("int32 range as text", b'{"trialId": "-2147483649"}', "trialId: expected a 32-bit integer"),
    ("int32 exponent", b'{"trialId": 1e12}', "trialId: expected a 32-bit integer"),
    ("int64 range", b'{"size": 9223372036854775808}', "size: expected a 64-bit integer"),
    ("int64 range as text", b'{"size": "9223372036854775808"}', "size: expected a 64-bit integer"),
    ("text for int64", b'{"size": "x"}', "size: expected a 64-bit integer, got 'x'"),
    ("inside a map", b'{"sizeByFile": {"a": []}}', "sizeByFile.a: expected a 64-bit integer, got an array"),
    ("unknown enum name", b'{"state": "ACTIVE"}', "state: expected one of STATE_UNSPECIFIED, STATE_ACTIVE, STATE_PAUSED, got 'ACTIVE'"),  # noqa: E501
    ("unknown enum number", b'{"state": 2}', "state: expected one of"),
    ("enum in a list", b'{"states": ["STATE_ACTIVE", 9]}', "states[1]: expected one of"),
    ("null in a list", b'{"names": [null]}', "names[0]: expected `str`, got `null`"),
    ("nested", b'{"branches": [{}, {"branch": {"leafCount": "x"}}]}', "branches[1].branch.leafCount: expected `int`"),
    ("text for bool", b'{"archived": "true"}', "archived: expected `bool`"),
    ("bad base64", b'{"content": "!"}', "content: "),
    ("moment without a zone", b'{"startTime": "2024-05-01T12:00:00"}', "startTime: expected `datetime` with a timezone"),  # noqa: E501
    ("NUL", b'{"userName": "a\\u0000"}', "userName: expected text without NUL"),
    ("NUL in a list", b'{"names": ["a", "\\u0000"]}', "names[1]: expected text without NUL"),
    ("NUL in free form", b'{"config": {"a": ["\\u0000"]}}', "config.a: expected text without NUL"),
    ("NUL in a key", b'{"config": {"\\u0000": 1}}', "config: expected text without NUL"),
    ("too deep", b'{"config": {"a": ' + b"[" * 150 + b"]" * 150 + b"}}", "nested deeper than 100"),
    ("absurdly deep", b'{"config": {"a": ' + b"[" * 100_000, "body"),
    ("number beyond floats", b'{"loss": 1e999}', "loss: number out of range"),
    ("number beyond floats where nobody looks, and not UTF-8", b'{"unknown": 1e999, "userName": "\xff"}', "request body is not valid"),  # noqa: E501
    ("digits beyond floats", b'{"loss": "1e999"}', "loss: the number is too large"),
    ("integer beyond floats", b'{"config": {"a": ' + b"9" * 400 + b"}}", "config.a: the number is too large"),
    ("integer beyond everything", b'{"trialId": ' + b"9" * 100_000 + b"}", "trialId: integer value out of range"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "words"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_wrong_bodies_are_refused_in_terms_of_the_field(body: bytes, words: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        decode(body)
    assert words in str(refusal.value)


def test_nul_passes_where_the_route_allows_it() -> None:
    assert BodyDecoder(Everything, allow_nul=True)(b'{"userName": "a\\u0000"}').user_name == "a\0"


BARE = [
    (str, b"", ""),
    (str, b'"secret"', "secret"),
    (list[Branch], b"", []),
    (list[Branch], b'[{"leaf_count": "3"}]', [Branch(leaf_count=3)]),
    (dict[str, Any], b"", {}),
    (dict[str, Any], b'{"a_b": null}', {"a_b": None}),
]


@pytest.mark.parametrize(("kind", "body", "expected"), BARE)
def test_bodies_that_are_no_message(kind: Any, body: bytes, expected: object) -> None:
    assert BodyDecoder(kind)(body) == expected


def test_a_field_without_default_is_asked_for_by_name() -> None:
    class Strict(msgspec.Struct, kw_only=True, rename="camel"):
        trial_id: int

    with pytest.raises(InvalidRequest, match="missing required field `trialId`"):
        BodyDecoder(Strict)(b"{}")


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-10, 10)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["STATE_ACTIVE", "NaN", "Infinity", "7", "2024-05-01T10:00:00Z", "YQ==", "9223372036854775808"])
)
FIELDS = st.sampled_from(
    [name for field in msgspec.structs.fields(Everything) for name in (field.name, field.encode_name)]
    + ["leafCount", "leaf_count", "branch", "other"]
)
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS, inner, max_size=6), max_leaves=15
)


@settings(max_examples=400, deadline=None)
@given(st.dictionaries(FIELDS, TREES, max_size=8))
def test_any_json_gives_a_value_or_a_refusal_and_both_ways_agree(tree: dict[str, Any]) -> None:
    body = json.dumps(tree).encode()

    def outcome(padding: bytes) -> str:
        try:
            return repr(decode(body + padding))
        except InvalidRequest as refusal:
            return str(refusal)

    assert outcome(b"") == outcome(LARGE)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_give_a_value_or_a_refusal(body: bytes) -> None:
    with contextlib.suppress(InvalidRequest):
        assert isinstance(decode(body), Everything)


@settings(max_examples=200, deadline=None)
@given(
    st.builds(
        Everything,
        trial_id=st.integers(-(2**31), 2**31 - 1),
        state=st.sampled_from(State),
        states=st.lists(st.sampled_from(State), max_size=3),
        size=st.integers(-(2**63), 2**63 - 1).map(str),
        loss=st.floats(allow_nan=False, allow_infinity=False),
        content=st.binary(max_size=20),
        user_name=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=10),
        branch=st.none() | st.builds(Branch, leaf_count=st.integers(0, 100)),
    )
)
def test_what_we_encode_we_decode(message: Everything) -> None:
    assert decode(msgspec.json.encode(message)) == message
