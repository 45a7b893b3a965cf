"""Copies of configurations, made for each layer that is merged: several times as quick as ``copy.deepcopy``."""

from __future__ import annotations

from typing import Any


def copied(value: Any) -> Any:
    """A copy of JSON values that may be changed without changing ``value``; anything else in them is shared.

    What occurs twice in ``value`` is there twice in the copy, as in the text that it came from.
    """
    if isinstance(value, dict):
        return {key: copied(each) if isinstance(each, dict | list) else each for key, each in value.items()}
    if isinstance(value, list):
        return [copied(each) if isinstance(each, dict | list) else each for each in value]
    return value
