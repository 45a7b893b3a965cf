"""Reads configurations as they were stored, which nobody checks again.

Those of older releases and of imports lack what today's have, or have something else in its place. Here, what is not of
its kind is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from libs.shapes.shape import Object


def part(config: Any, name: str) -> Object:
    """An object in a configuration, or in a part of one; empty when there is none. Not a copy."""
    found = config.get(name) if isinstance(config, Mapping) else None
    return found if isinstance(found, dict) else {}


def text_in(config: Mapping[str, Any], name: str) -> str:
    """A text; empty when there is none."""
    found = config.get(name)
    return found if isinstance(found, str) else ""


def number_in(config: Mapping[str, Any], name: str) -> float | None:
    """A number that can be counted with."""
    found = config.get(name)
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def count_in(config: Mapping[str, Any], name: str) -> int | None:
    """How many of something, from 0 to what the columns of the database hold."""
    found = config.get(name)
    is_count = isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 2**31
    return found if is_count else None


def labels_of(config: Any) -> list[str]:
    """Those that are texts."""
    found = config.get("labels") if isinstance(config, dict) else None
    return [label for label in found if isinstance(label, str)] if isinstance(found, list) else []


def prefers_small(config: Any) -> bool:
    """Whether a smaller searcher metric is the better one."""
    return part(config, "searcher").get("smaller_is_better") is not False
