"""Memory sizes as people write them: ``1.5 gb``, ``128M``, ``24576``.

Multiples are binary in every spelling: 1k = 1kb = 1kib = 1024 bytes.
Source: docs/reference/experiments.md 1.3 (resources.shm_size) and 15 (defect 11).
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

from libs.shapes.shape import Read, json_type, whole, wrong

_SIZE: Final = re.compile(r"(?P<amount>([0-9]*[.])?[0-9]+) ?((?P<unit>[kmgtpKMGTP])([iI]?[bB])?|[bB])?", re.ASCII)
_UNITS: Final = "kmgtp"


def size_bytes(text: str) -> int | None:
    """The number of bytes, rounded down, or None when ``text`` is no size."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    power = _UNITS.index(match["unit"].lower()) + 1 if match["unit"] else 0
    return int(Decimal(match["amount"]) * 1024**power)


def memory_size(value: Any, path: str) -> Read:
    """A size in bytes, from a number of bytes or a size with a unit."""
    if json_type(value) in ("integer", "number"):
        return whole(0)(value, path)
    size = size_bytes(value) if isinstance(value, str) else None
    return Read(size) if size is not None else wrong(path, "must be a valid memory size")
