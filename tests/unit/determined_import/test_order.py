"""Nothing of an old installation is forgotten without a word."""

from __future__ import annotations

import re

from deploy.determined_import.kinds.order import JOINED, KINDS, LEFT_BEHIND, LOG_KINDS
from tests.harness.determined.schema import tables


def test_every_old_table_is_imported_or_left_behind_for_a_reason() -> None:
    read = {re.findall(r"[a-z][\w.]*", each.rows)[0] for each in (*KINDS, *LOG_KINDS)} - {"SELECT"}
    assert read | JOINED | set(LEFT_BEHIND) | {"projects"} >= set(tables())
    assert not (read | JOINED) & set(LEFT_BEHIND)


def test_kinds_have_names_of_their_own() -> None:
    """Progress is kept by them."""
    names = [each.kind for each in (*KINDS, *LOG_KINDS)]
    assert len(names) == len(set(names))


def test_every_column_that_has_no_default_is_filled() -> None:
    for each in (*KINDS, *LOG_KINDS):
        needed = {
            column.name
            for column in each.target.c
            if not column.nullable and column.server_default is None and column.identity is None
        }
        assert needed <= set(each.columns), each.kind
