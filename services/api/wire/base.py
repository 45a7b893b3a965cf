"""The base class of every REST message, and the scalar types of the wire.

The clients were generated from protobuf definitions, so the JSON follows the protobuf mapping
(docs/reference/platform.md 1.1): every field is present also when it holds its zero value, 64-bit integers are strings,
enums go by their full name, and only what was declared optional may be missing. In a message of this project:

    text: str = ""                      always emitted
    parent: Workspace | None = None     a sub-message: ``null`` when unset
    label: str | UnsetType = UNSET      proto3 ``optional`` or a one-of member: the key is left out when unset
    states: list[State] = []            never null
    checkpoint_size: Int64 = "0"        made with ``int64(n)``, read with ``int(text)``
    loss: Double = 0.0                  made with ``double(x)``, read with ``float(value)``
    start_time: Timestamp | None = None made with ``timestamp(moment)``
    config: dict[str, Any] | None       free form; made with ``struct_value(obj)`` or ``struct_text(text)``

In a request, null means absent, unless the field admits None, which then is what null becomes: a field typed
``X | UnsetType | None`` can tell "remove it" from "leave it". A plain ``int`` is a 32-bit integer, as nearly all are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from msgspec import Meta, Raw, Struct, json


class Message(Struct, kw_only=True, rename="camel", omit_defaults=False):
    """Base of all REST bodies, replies and query structs: snake_case in Python, camelCase on the wire.

    ``kw_only`` is not inherited: a message with a field that has no default repeats it, ``class X(Message,
    kw_only=True)``.
    """


class Empty(Message):
    """The reply of an endpoint that has nothing to say: ``{}``."""


class Pagination(Message):
    """Which part of a list a reply holds; ``services/api/queries/pagination.py`` computes it."""

    offset: int = 0
    limit: int = 0
    start_index: int = 0
    end_index: int = 0
    total: int = 0


class WireEnum(StrEnum):
    """An enum that is known by its full name and, on input, also by its number.

    Members are pairs, the zero member first::

        class OrderBy(WireEnum):
            UNSPECIFIED = "ORDER_BY_UNSPECIFIED", 0
            ASC = "ORDER_BY_ASC", 1

    The value of a member is its wire name.
    """

    number: int

    def __new__(cls, name: str, number: int) -> Self:
        member = str.__new__(cls, name)
        member._value_ = name
        member.number = number
        return member

    @classmethod
    def by_number(cls, number: int) -> Self | None:
        """The member with this number, or None."""
        return next((member for member in cls if member.number == number), None)


INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

Int32: TypeAlias = Annotated[int, Meta(ge=INT32_MIN, le=INT32_MAX)]
"""The same as ``int`` in a message; spelled out on hot request types, the range is checked while decoding."""

# The pattern lets a few values beyond 64 bits pass, all of 19 digits; the decoder looks at those exactly.
Int64: TypeAlias = Annotated[
    str, Meta(pattern=r"^-?(0|[1-9][0-9]{0,18})$(?!\n)", extra_json_schema={"format": "int64"}, extra={"int64": True})
]
"""A 64-bit integer: a string of digits on the wire; requests may also send a number."""

Double: TypeAlias = float | Literal["NaN", "Infinity", "-Infinity"]
"""A double that may be non-finite. Requests that only need the number say ``float``, which accepts the names too."""

Instant: TypeAlias = Annotated[datetime, Meta(tz=True)]
"""A moment in a request, RFC 3339 with an offset; replies have a ``Timestamp``."""

Timestamp: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""A moment as text, RFC 3339. Replies have it in UTC, made with ``timestamp()`` or ``timestamp_ms()``."""


_INTEGRAL: Final = re.compile(r"\.0+(?!\d)")
"""What looks like an integral float."""
_DIGITS: Final = bytes.maketrans(b"012345678", b"9" * 9)
_MANY_DIGITS: Final = b"9" * 22
"""What looks, with 9 for every digit, like a number that is written with an exponent. A regular expression takes ten
times as long to find it."""
_EXPONENT_FROM: Final = 10**21
"""From here on numbers are written with an exponent, as floats."""
_AS_THEY_ARE: Final = frozenset({str, bool, type(None)})


def int64(value: int) -> Int64:
    """A 64-bit integer as it goes over the wire."""
    return str(value)


def double(value: float) -> Double:
    """A double as it goes over the wire: non-finite values by name, because JSON has no numbers for them."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def timestamp(moment: datetime | None) -> str | None:
    """RFC 3339 in UTC with ``Z`` and the shortest of 0, 3 or 6 fractional digits that loses nothing.

    A moment without a zone is taken as UTC. None stays None, which the client reads as "not set".
    """
    if moment is None:
        return None
    text = _rfc3339(moment)
    if moment.microsecond % 1000 == 0 and moment.microsecond:
        return text[:-4] + "Z"
    return text


def timestamp_ms(moment: datetime) -> str:
    """RFC 3339 in UTC with exactly three fractional digits, for lists that clients sort by the text."""
    text = _rfc3339(moment)
    return text[:-4] + "Z" if moment.microsecond else text[:-1] + ".000Z"


def _rfc3339(moment: datetime) -> str:
    """In UTC, with six fractional digits or, for a whole second, none; in a third of the time of ``isoformat``."""
    return json.encode(_utc(moment))[1:-1].decode()


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is UTC:  # as the database driver has it
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def struct_value(value: Any) -> Any:
    """Free-form JSON as protobuf prints a Struct: integral floats as integers, non-finite ones by name.

    Takes what a JSON decoder gives (and tuples); returns new containers and leaves the argument unchanged.
    """
    # Documents have thousands of values, and a decoder gives nothing but the types themselves.
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is dict:
        return {key: item if type(item) in _AS_THEY_ARE else struct_value(item) for key, item in value.items()}
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, Mapping):
        return {key: struct_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [struct_value(item) for item in value]
    return value


def _number(value: float) -> int | Double:
    """An integer if it is one, and from 1e21 on a float, which msgspec writes with an exponent as the reference does.

    PostgreSQL makes an integer of 309 digits of 1e308 in a document. Beyond the range of doubles is infinity.
    """
    if abs(value) < _EXPONENT_FROM:
        return int(value) if isinstance(value, int) or value.is_integer() else value
    try:
        return double(float(value))
    except OverflowError:
        return double(math.inf if value > 0 else -math.inf)


def struct_text(text: str) -> Any:
    """The same for a document as PostgreSQL writes one, which has keys in an order of its own.

    One in which all numbers are written as they are here is put in order without a look at each value.
    """
    document = json.decode(text)
    return Raw(json.encode(document, order="deterministic")) if _is_as_here(text) else struct_value(document)


def struct_document(document: Any, text: str) -> Any:
    """The same for a document that was decoded to look into it; it may be ``document`` itself."""
    return document if _is_as_here(text) else struct_value(document)


def _is_as_here(text: str) -> bool:
    """Whether all numbers of a document are written as they are here; of some that are, it says no."""
    return _INTEGRAL.search(text) is None and _MANY_DIGITS not in text.encode().translate(_DIGITS)
