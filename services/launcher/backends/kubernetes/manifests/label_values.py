"""Label values made of any text (docs/reference/kubernetes.md 2.3)."""

from __future__ import annotations

import re
from typing import Final

MAX_LENGTH: Final = 63
INVALID: Final = "invalid_value"

_VALID: Final = re.compile(r"(?:[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)?")
_DISALLOWED: Final = re.compile(r"[^-_.A-Za-z0-9]")
_AT_THE_START: Final = re.compile(r"^[^A-Za-z0-9]+")
_AT_THE_END: Final = re.compile(r"[^A-Za-z0-9]+$")


def label_value(text: str) -> str:
    """The text itself when it can be a label value, else the nearest thing that can; different texts may collide."""
    if _VALID.fullmatch(text):
        return text
    cut = _AT_THE_START.sub("", _DISALLOWED.sub("_", text))[:MAX_LENGTH]
    value = _AT_THE_END.sub("", cut)
    return value if _VALID.fullmatch(value) else INVALID
