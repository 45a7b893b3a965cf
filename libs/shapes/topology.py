"""How near to each other the pods of a task are to be: ``{preferred: LEVEL}`` or ``{required: LEVEL}``.

A level is the key of a label of nodes, as ``example.com/rack``, whose values name the domains.
"""

from __future__ import annotations

from typing import Any, Final

from libs.shapes.shape import checked, record, text

PREFERRED: Final = "preferred"
REQUIRED: Final = "required"
EXPECTED: Final = "must name one level, either as preferred or as required"


def _names_one_level(value: Any) -> str | None:
    return None if len(value) == 1 and all(value.values()) else EXPECTED


topology: Final = checked(record({PREFERRED: text, REQUIRED: text}), _names_one_level)
