"""Limits of the metadata of a run: docs/reference/experiments.md 13.7, one row per limit."""

from __future__ import annotations

from typing import Any


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"k": value}
    return value


WITHIN: list[dict[str, Any]] = [
    {},
    nested(10),
    {"a": list(range(100))},
    {"k" * 50: "v" * 5000},
    {str(n): n for n in range(1000)},
]

BEYOND: list[tuple[dict[str, Any], str]] = [
    (nested(11), "metadata exceeds maximum nesting depth of 10"),
    ({"a": list(range(101))}, "metadata array exceeds maximum length of 101/100 elements"),
    ({"k" * 51: 1}, "metadata key exceeds maximum length of 50 characters"),
    ({"a": ["v" * 5001]}, "metadata value exceeds maximum length of 5000 characters"),
    ({str(n): n for n in range(1001)}, "request exceeds run metadata key count limit"),
    ({"a": {str(n): n for n in range(1000)}}, "request exceeds run metadata key count limit"),
    *(({"a": {f"x{c}": 1}}, "metadata keys can not contain the following character") for c in "$.[]"),
]
