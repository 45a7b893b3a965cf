"""Rank and level prefixes, by which the launchers and the harness tell who said a line and how loud.

Clients filter on what is found here, so the grammar is the reference's to the letter (docs/reference/logs.md 2.4).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MAX_RANK: Final = 2**31 - 1
_RANK: Final = re.compile(rb" ?\[rank=([0-9]+)\] ?")
_LEVEL: Final = re.compile(rb" ?(DEBUG|INFO|WARNING|ERROR|CRITICAL): ?")


class Prefixed(NamedTuple):
    rank_id: int | None
    level: str | None
    log: bytes
    """What remains of the line."""


def split_prefixes(line: bytes) -> Prefixed:
    """Take one rank prefix, then one level prefix, off a line; bytes that are no text do no harm."""
    rank_id, level = None, None
    # Nearly every line has neither, and this runs for every line there is.
    if found := _RANK.match(line):
        digits = found[1]
        if len(digits) <= 10 and int(digits) <= MAX_RANK:
            rank_id, line = int(digits), line[found.end() :]
    if found := _LEVEL.match(line):
        level, line = found[1].decode(), line[found.end() :]
    return Prefixed(rank_id, level, line)
