"""Leave out the directives of a patch that make no sense, where nobody is to fail because of them.

Directives never did anything in the pod specs of experiments, so there are such that were written for nothing, and
wrongly (docs/reference/kubernetes.md 6.3). Which make no sense is what merging refuses, and shows in the patch alone.
"""

from __future__ import annotations

from typing import Any

from libs.podspec.edits import (
    DIRECTIVE,
    ORDER,
    REMOVE,
    RETAIN,
    Edit,
    InvalidPodPatch,
    Object,
    field_edits,
    retained,
    strategy,
)
from libs.podspec.merge import check_order
from libs.podspec.merge_keys import NO_RULES, POD, KeyedList, Rule, Schema, inside


def without_senseless_directives(pod: Object) -> Object:
    """The pod without directives that ``merge_pod`` refuses, whatever it is merged over; ``pod`` is left unchanged."""
    return _object(pod, POD)


def _object(patch: Object, schema: Schema) -> Object:
    return {
        key: value if key.startswith("$") else _value(value, schema.get(key))
        for key, value in patch.items()
        if not _is_refused(key, patch, schema)
    }


def _value(value: Any, rule: Rule | None) -> Any:
    if isinstance(value, dict):
        return _object(value, inside(rule))
    if not isinstance(value, list):
        return value
    item = rule.item if isinstance(rule, KeyedList) else NO_RULES
    return [
        _object(element, item) if isinstance(element, dict) else element
        for element in value
        if not _deletes_nothing(element, rule)
    ]


def _deletes_nothing(element: Any, rule: Rule | None) -> bool:
    """Whether it wants an element of a keyed list gone, and does not say which."""
    if not isinstance(element, dict) or not isinstance(rule, KeyedList):
        return False
    return element.get(DIRECTIVE) == "delete" and element.get(rule.key) is None


def _is_refused(key: str, patch: Object, schema: Schema) -> bool:
    """Whether ``key`` is a directive that merging refuses beside the fields of the patch."""
    try:
        _check(key, patch, schema)
    except InvalidPodPatch:
        return True
    return False


def _check(key: str, patch: Object, schema: Schema) -> None:
    """Raise InvalidPodPatch when ``key`` is a directive that makes no sense beside the fields of the patch."""
    if key == DIRECTIVE:
        strategy(patch, "")
    elif key == RETAIN:
        fields = {name: value for name, value in patch.items() if not name.startswith((ORDER, REMOVE))}
        retained({}, patch, field_edits(fields, ""), "")
    elif key.startswith((ORDER, REMOVE)):
        [(name, edit)] = field_edits({key: patch[key]}, "").items()
        if isinstance(given := patch.get(name), list):
            check_order(Edit(value=given, order=edit.order), schema.get(name), "")
