"""What the value in a filter stands for, by the kind of column that it is compared with. Pure."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Final

import msgspec

from libs.errors import InvalidRequest
from services.api.queries.search.language.filters import Field

_MONTH: Final = re.compile(r"\d{4}-\d{2}")


def number_of(field: Field) -> int | float:
    """A number in the range of doubles, also when it came as text. Raises InvalidRequest."""
    value = field.value
    if isinstance(value, str):
        value = _parsed(value)
    if value is None or isinstance(value, bool):
        raise _expected(field, "a number")
    try:
        float(value)
    except OverflowError:
        raise _expected(field, "a number in the range of doubles") from None
    return value


def text_of(field: Field) -> str:
    """The value as text; numbers and booleans as JSON has them."""
    return field.value if isinstance(field.value, str) else msgspec.json.encode(field.value).decode()


def boolean_of(field: Field) -> bool:
    """Raises InvalidRequest."""
    value = field.value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise _expected(field, "true or false")
    return value


def moment_of(field: Field) -> datetime:
    """A moment in UTC from RFC 3339, a date, or a month; without an offset it is in UTC. Raises InvalidRequest."""
    text = field.value if isinstance(field.value, str) else ""
    try:
        moment = datetime.fromisoformat(f"{text}-01" if _MONTH.fullmatch(text) else text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _expected(field, "a time such as 2021-04-14T14:14:18Z") from None


def _parsed(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            number: int | float = kind(text)
        except ValueError:
            continue
        if kind is float and math.isinf(number) and "inf" not in text.lower():
            return None
        return number
    return None


def _expected(field: Field, what: str) -> InvalidRequest:
    shown = repr(field.value)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return InvalidRequest(f"filter: column '{field.column}': value: expected {what}, got {shown}")
