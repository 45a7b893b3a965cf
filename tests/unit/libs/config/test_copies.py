from __future__ import annotations

from typing import Any

from libs.shapes.copies import copied


def test_nothing_that_may_be_changed_is_shared_with_a_copy() -> None:
    inner: list[Any] = [1, {"deep": [2]}]
    value = {"a": inner, "again": inner, "empty": {}, "text": "x", "nothing": None}
    copy = copied(value)
    assert copy == value
    copy["a"][1]["deep"].append(3)
    copy["empty"]["key"] = True
    assert copy["again"] == [1, {"deep": [2]}]
    assert value == {
        "a": [1, {"deep": [2]}],
        "again": [1, {"deep": [2]}],
        "empty": {},
        "text": "x",
        "nothing": None,
    }
