"""Counts the values of JSON text before it is parsed: a parser makes an object of each, and nobody else runs meanwhile.

Pure. Source: RFC 8259 2: all values but the first of a document follow a comma or an opening bracket.
"""

from __future__ import annotations

import re
from typing import Final

_TOKENS: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{,]', re.DOTALL)
_SEPARATORS: Final = (b",", b"[", b"{")


def has_more_values(text: bytes, most: int) -> bool:
    """Whether JSON text has more than about ``most`` values; takes little time however large it is.

    Text that is no JSON may be taken for either: whoever parses it says what is wrong.
    """
    if sum(map(text.count, _SEPARATORS)) <= most:
        return False
    separators = strings = 0
    for token in _TOKENS.finditer(text):
        if token[0][:1] == b'"':
            strings += 1
        else:
            separators += 1
        if separators > most or strings > 2 * most + 1:  # each value may have a key
            return True
    return False
