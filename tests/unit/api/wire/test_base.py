"""Scalars and messages come out exactly as protobuf JSON would print them."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from services.api.wire.base import double, int64, struct_text, struct_value, timestamp, timestamp_ms
from tests.unit.api.http.shapes import Branch, Everything, State

MOMENTS = [
    (datetime(2024, 5, 1, 10, 0, 0, tzinfo=UTC), "2024-05-01T10:00:00Z"),
    (datetime(2024, 5, 1, 10, 0, 0, 120_000, tzinfo=UTC), "2024-05-01T10:00:00.120Z"),
    (datetime(2024, 5, 1, 10, 0, 0, 123_450, tzinfo=UTC), "2024-05-01T10:00:00.123450Z"),
    (datetime(2024, 5, 1, 10, 0, 0, 1, tzinfo=UTC), "2024-05-01T10:00:00.000001Z"),
    (datetime(2024, 5, 1, 12, 0, tzinfo=timezone(timedelta(hours=2))), "2024-05-01T10:00:00Z"),
    (datetime(2024, 5, 1, 10, 0), "2024-05-01T10:00:00Z"),
    (None, None),
]


@pytest.mark.parametrize(("moment", "text"), MOMENTS)
def test_timestamps_are_utc_with_the_shortest_fraction(moment: datetime | None, text: str | None) -> None:
    assert timestamp(moment) == text


def test_timestamps_for_sorted_lists_have_milliseconds() -> None:
    assert timestamp_ms(datetime(2024, 5, 1, 10, 0, 0, tzinfo=UTC)) == "2024-05-01T10:00:00.000Z"
    assert timestamp_ms(datetime(2024, 5, 1, 10, 0, 0, 999_999, tzinfo=UTC)) == "2024-05-01T10:00:00.999Z"


@pytest.mark.parametrize(
    ("value", "wire"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity"), (1.5, 1.5), (0.0, 0.0)]
)
def test_non_finite_doubles_go_by_name(value: float, wire: object) -> None:
    assert double(value) == wire
    assert repr(float(double(value))) == repr(value)


def test_free_form_values_print_as_protobuf_prints_them() -> None:
    value = {"a": 1.0, "b": [1.5, math.nan, (2.0,)], "c": {"d": -math.inf, "e": None, "f": True}, "g": 1e300}
    expected = {"a": 1, "b": [1.5, "NaN", [2]], "c": {"d": "-Infinity", "e": None, "f": True}, "g": 1e300}
    assert msgspec.json.encode(struct_value(value)) == msgspec.json.encode(expected)
    assert value["a"] == 1.0
    assert isinstance(value["a"], float)


@pytest.mark.parametrize("of", [struct_value, lambda value: struct_text(msgspec.json.encode(value).decode())])
def test_large_numbers_have_an_exponent_though_the_database_writes_all_digits(of: Callable[[Any], Any]) -> None:
    stored = {"a": 10**308, "b": [-(10**21)], "c": 10**21 - 1, "d": 10**400}
    written = msgspec.json.encode(of(stored)).decode()
    assert written == '{"a":1e308,"b":[-1e21],"c":999999999999999999999,"d":"Infinity"}'


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "b": [1.5, "NaN"], "c": {"d": null, "e": true}}',
        '{"a": 1.0, "b": [2.000, 100.05, -0.0]}',
        '{"a": 12345678901234567890, "b": 0.12345678901234567890, "c": -0.00000000000000000001}',
        '{"a": "version 1.0", "b.0": {}}',
        f'{{"a": 1{"0" * 308}, "b": -1{"0" * 21}, "c": 1{"0" * 20}, "d": 0.1{"0" * 30}1}}',
        "[1.0]",
        '"text"',
        "null",
    ],
)
def test_a_stored_document_reads_the_same_whether_it_was_decoded_or_not(text: str) -> None:
    expected = msgspec.json.decode(msgspec.json.encode(struct_value(msgspec.json.decode(text))))
    found = msgspec.json.decode(msgspec.json.encode(struct_text(text)))
    assert repr(found) == repr(expected)


def test_zero_values_are_present_and_optional_ones_are_not() -> None:
    assert msgspec.json.decode(msgspec.json.encode(Everything())) == {
        "trialId": 0,
        "runId": 0,
        "state": "STATE_UNSPECIFIED",
        "states": [],
        "branch": None,
        "branches": [],
        "size": "0",
        "sizeByFile": {},
        "config": None,
        "loss": 0.0,
        "best": 0.0,
        "content": "",
        "startTime": None,
        "archived": False,
        "userName": "",
        "names": [],
    }


def test_values_that_are_set_are_emitted() -> None:
    message = Everything(
        state=State.PAUSED,
        branch=Branch(leaf_count=1),
        optional_text="",
        max_slots=None,
        size=int64(2**62),
        content=b"a",
    )
    wire = msgspec.json.decode(msgspec.json.encode(message))
    assert wire["state"] == "STATE_PAUSED"
    assert wire["branch"] == {"leafCount": 1, "branch": None}
    assert wire["optionalText"] == ""
    assert wire["maxSlots"] is None
    assert wire["size"] == "4611686018427387904"
    assert wire["content"] == "YQ=="


def test_enums_know_their_numbers() -> None:
    assert State.by_number(4) is State.PAUSED
    assert State.by_number(2) is None
    assert msgspec.convert("STATE_ACTIVE", State) is State.ACTIVE
    assert f"{State.ACTIVE}" == "STATE_ACTIVE"
