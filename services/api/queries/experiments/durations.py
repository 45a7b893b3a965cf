"""How long experiments and runs have taken, in whole seconds as clients show them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, cast, func


def whole_seconds(start: ColumnElement[Any], end: ColumnElement[Any]) -> ColumnElement[int]:
    """From start to end, or until now where there is no end yet; never negative."""
    seconds = func.extract("epoch", func.coalesce(end, func.now()) - start)
    return cast(func.floor(func.greatest(seconds, 0)), BigInteger)
