"""Lines that services log, for the api to show (``det master logs``); kept for a while, not for correctness."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

LONGEST_LINE: Final = 64 * 1024
"""Characters, of a line with its stack."""


class ServiceLine(Struct, frozen=True, kw_only=True):
    """Its subject says which service speaks: that is what the credentials of each are limited to."""

    time: datetime
    level: str
    """Bare name: INFO, WARNING, ..."""
    message: str
