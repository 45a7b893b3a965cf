"""Names sorted by the database as people expect them, the same on every PostgreSQL: see ``libs.natural_order.keys``."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Text, func


def natural(name: ColumnElement[Any]) -> ColumnElement[Any]:
    """What to order by for names in their natural order; ids decide between equal names."""
    return func.natural_sort_key(name.collate("C"), type_=Text)
