"""What the fields of models and of their versions may hold (docs/reference/platform.md 10). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from libs.errors import InvalidRequest

LONGEST_NAME: Final = 512
"""In characters; the index of the table could not hold names of any length."""
_ONLY_DIGITS: Final = re.compile(r"[0-9]+")


def checked_name(name: str) -> str:
    """The name of a model, which is part of the address of the model. Raises InvalidRequest."""
    if not name.strip():
        raise InvalidRequest("model names cannot be blank")
    if "  " in name:
        raise InvalidRequest("model names cannot have excessive spacing")
    if "/" in name:
        raise InvalidRequest("model names cannot have slashes")
    if _ONLY_DIGITS.fullmatch(name):
        raise InvalidRequest("model names cannot be only numbers")
    if name in (".", ".."):
        raise InvalidRequest("model names cannot be '.' or '..'")  # clients take such a part out of addresses
    if len(name) > LONGEST_NAME:
        raise InvalidRequest(f"model names cannot be longer than {LONGEST_NAME} characters")
    return name


def checked_labels(labels: Sequence[str]) -> list[str]:
    """Each label once, in the order given. Raises InvalidRequest for an empty one."""
    if not all(label.strip() for label in labels):
        raise InvalidRequest("labels: a label must not be empty")
    return list(dict.fromkeys(labels))
