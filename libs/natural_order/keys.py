"""The order in which people expect names: "b" before "C", "run 9" before "run 10".

The function of the same name in the database (migration 0008) returns the same keys, so lists that are sorted here and
lists that are sorted there have one order, whatever the locale of the database is.
"""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 256
"""Characters of a name that count; an entry of an index has room for no more than 2700 bytes."""
_LETTERS: Final = (*range(ord("A"), ord("Z") + 1), *range(0x80, 0x590), *range(0x1E00, 0x1F00))
_LOWER: Final = {code: ord(lower) for code in _LETTERS if len(lower := chr(code).lower()) == 1 and ord(lower) != code}
"""Latin, Greek, Cyrillic and Armenian letters; each becomes one letter, whatever stands beside it."""
_DIGITS: Final = re.compile("[0-9]+")


def natural_sort_key(name: str) -> str:
    """Compared by code points, keys order names in lower case with digits by value; the name itself decides ties."""
    counted = name[:LONGEST]
    # Nothing sorts before the separator, so a name comes before those that begin with it.
    return _DIGITS.sub(_by_value, counted.translate(_LOWER)) + "\x01" + counted


def _by_value(digits: re.Match[str]) -> str:
    """The number behind the number of its digits, that in turn as a nine for each nine and what is left."""
    value = digits[0].lstrip("0")
    nines, rest = divmod(len(value), 9)
    return "9" * nines + str(rest) + value
