"""Finds runs by their address KEY-n: by the present one, and by those that they had before.

A project keeps the keys that it had, and a run the addresses that it had in other projects, so that whatever somebody
wrote down leads to the same run for ever. Source: docs/reference/platform.md 8.
"""

from __future__ import annotations

import re
from typing import Final

from sqlalchemy import ColumnElement, and_, false, or_, select

from libs.db.tables.trials import former_addresses, trials
from libs.db.tables.workspaces import project_keys
from services.api.queries.search.language.filters import Field, Operator
from services.api.queries.search.language.values import text_of
from services.api.queries.search.operators import negated

COLUMN: Final = "localId"
OPERATORS: Final = frozenset({Operator.EQUAL, Operator.NOT_EQUAL})
"""With which a whole address is meant; the others look at the text of the present one."""

_ADDRESS: Final = re.compile(r"([A-Za-z0-9]+)-([1-9][0-9]{0,8})")


def condition(field: Field) -> ColumnElement[bool]:
    """Whether the value is, or was, the address of the run. Raises InvalidRequest."""
    address = _ADDRESS.fullmatch(text_of(field))
    if address is None:
        return negated(field.operator, false())
    key, number = address[1].upper(), int(address[2])
    projects = select(project_keys.c.project_id).where(project_keys.c.key == key)
    moved = select(former_addresses.c.trial_id).where(
        former_addresses.c.key == key, former_addresses.c.local_id == number
    )
    here = and_(trials.c.local_id == number, trials.c.project_id.in_(projects))
    return negated(field.operator, or_(here, trials.c.id.in_(moved)))
