"""Pools in which a task may start when it has waited long enough in its own: ``resources.fallback_pools``.

A list of names, or of ``{pool: NAME, after: WAIT}``: how long a task waits before it may also start there, counted from
when it was requested. A wait is whole seconds, or a text such as ``90m``.
"""

from __future__ import annotations

from typing import Any, Final

from libs.shapes.shape import MOST_COUNTED, Read, by_type, converted, json_type, list_of, record, text, whole, wrong
from libs.shapes.time_limits import parse_time_limit

EXPECTED: Final = 'must be whole seconds, or a text such as "90m", "12h" or "0s"'


def parse_wait(value: object) -> int | None:
    """Seconds from 0 to 2^31 - 1, or None when ``value`` is no wait."""
    if value == "0s" or (value == 0 and not isinstance(value, bool)):
        return 0
    return parse_time_limit(value)


def _wait(value: Any, path: str) -> Read:
    if json_type(value) in ("integer", "number"):
        return whole(0, MOST_COUNTED)(value, path)
    seconds = parse_wait(value)
    return Read(seconds) if seconds is not None else wrong(path, EXPECTED)


def _named(pool: str) -> dict[str, Any]:
    return {"pool": pool}


_POOL: Final = by_type(
    string=converted(text, _named), object=record({"pool": text, "after": _wait}, required=("pool",))
)
fallback_pools: Final = list_of(_POOL)
"""Normal form: objects with ``pool`` and, where it is given, ``after`` in seconds."""
