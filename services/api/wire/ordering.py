"""The direction of sorted lists."""

from __future__ import annotations

from services.api.wire.base import WireEnum


class OrderBy(WireEnum):
    """UNSPECIFIED is ascending, unless a list says otherwise."""

    UNSPECIFIED = "ORDER_BY_UNSPECIFIED", 0
    ASC = "ORDER_BY_ASC", 1
    DESC = "ORDER_BY_DESC", 2
