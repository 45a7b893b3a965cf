"""Values of attributes as clients send them, which is not always as RFC 7643 has them. Pure.

Entra ID sends booleans as text, and single values in a list of one, which scim2-models refuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from libs.errors import InvalidRequest

LONGEST: Final = 1024
"""Characters of a text."""
MOST: Final = 100
"""E-mail addresses of a user."""


def unwrapped(value: Any) -> Any:
    """The value of ``[{"value": ...}]`` and of ``{"value": ...}``; anything else as it is."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict) and "value" in value:
        return value["value"]
    return value


def is_storable(found: str) -> bool:
    """Has it neither NUL characters nor halves of characters, which escapes of JSON can make?"""
    return not any(each == "\0" or "\ud800" <= each <= "\udfff" for each in found)


def text(value: Any, attribute: str) -> str:
    """Raises InvalidRequest; null is an empty text."""
    value = unwrapped(value)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidRequest(f"{attribute}: must be a text")
    found = str(value)
    if len(found) > LONGEST:
        raise InvalidRequest(f"{attribute}: must not be longer than {LONGEST} characters")
    if not is_storable(found):
        raise InvalidRequest(f"{attribute}: has characters that cannot be stored")
    return found


def flag(value: Any, attribute: str) -> bool:
    """Raises InvalidRequest."""
    value = unwrapped(value)
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.strip().lower())
    if not isinstance(value, bool):
        raise InvalidRequest(f"{attribute}: must be true or false")
    return value


def addresses(value: Any) -> Any:
    """E-mail addresses, of which one may come without a list. Raises InvalidRequest."""
    if value is None or value == "":
        return None
    given = value if isinstance(value, list) else [value]
    if len(given) > MOST:
        raise InvalidRequest(f"emails: there may be {MOST}, and no more")
    return given


def attribute(body: Mapping[str, Any], wanted: str) -> Any:
    """What a resource says of an attribute, however it spells its name (RFC 7643 2.1); None for nothing."""
    if wanted in body:
        return body[wanted]
    return next((value for key, value in body.items() if key.lower() == wanted.lower()), None)


def ids(value: Any, attribute: str) -> Sequence[str]:
    """Ids in a list of ``{"value": id}``, or one of these alone. Raises InvalidRequest."""
    if value is None:
        return ()
    given = value if isinstance(value, list) else [value]
    found = [each.get("value") if isinstance(each, dict) else each for each in given]
    if not all(isinstance(each, str) for each in found):
        raise InvalidRequest(f"{attribute}: each must be an object with the id of a user as its value")
    return [text(each, attribute) for each in found]
