"""Texts in names, which an index finds by three letters in a row (migration 0032)."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ARRAY, ColumnElement, Text, func

_TRIGRAM: Final = 3
"""Shorter texts are in so many names that no index finds them."""


def having_trigrams(trigrams: ColumnElement[Any], text: str) -> list[ColumnElement[bool]]:
    """What is true of each name that has ``text`` in it, in whichever case; none for a text that is too short.

    trigrams  of the names, in the words of an index
    """
    if len(text) < _TRIGRAM:
        return []
    return [trigrams.contains(func.name_trigrams(text, type_=ARRAY(Text)))]
