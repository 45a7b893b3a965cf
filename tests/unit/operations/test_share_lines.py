"""What `resolute shares` prints."""

from __future__ import annotations

from deploy.operations.shares import use_as_lines

USED = {
    "resourcePool": "default",
    "share": [{"scope": "group", "name": "vision"}, {"scope": "user", "name": "ann"}],
    "weight": 2.0,
    "usedSlots": 3.5,
    "effectiveSlots": 1.25,
}


def test_use_is_a_table_of_paths() -> None:
    other = {**USED, "share": [{"scope": "user", "name": "bob"}], "weight": 0.5, "usedSlots": 0.004}
    assert [line.split() for line in use_as_lines([USED, other])] == [
        ["POOL", "SHARE", "WEIGHT", "USED", "GETS"],
        ["default", "group", "vision", "/", "user", "ann", "2", "3.50", "1.25"],
        ["default", "user", "bob", "0.5", "0.00", "1.25"],
    ]
