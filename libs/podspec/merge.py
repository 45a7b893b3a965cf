"""Kubernetes strategic merge of pods: a patch of one layer over the pod of the layer below.

Objects merge field by field, null deletes, lists with a merge key merge element by element, other lists are replaced.
A field that the patch does not mention stays as it is, ``containers`` included. The result holds no directives and no
nulls, whatever the inputs were: a layer without anything below it is cleaned by merging it over nothing.

Differences from ``kubectl patch``, where that is surprising: ``$patch: merge`` is allowed; ``$patch: replace`` on a
field the base lacks gives its content rather than nothing; nulls and directives inside a new element or an atomic list
are carried out rather than copied.

Source: https://github.com/kubernetes/community, sig-api-machinery/strategic-merge-patch.md; spec/kubernetes.md 6.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from libs.podspec.edits import (
    DIRECTIVE,
    UNSET,
    Edit,
    InvalidPodPatch,
    Object,
    field_edits,
    retained,
    strategy,
)
from libs.podspec.lists import interleave, without_repeats
from libs.podspec.merge_keys import NO_RULES, POD, KeyedList, Rule, Schema, ValueSet

__all__ = ["InvalidPodPatch", "merge_pod"]


def merge_pod(base: Object | None, patch: Object | None) -> Object:
    """Apply ``patch`` (the layer that wins) over ``base``; None is an empty pod. Both are left unchanged.

    Raises InvalidPodPatch when an element of a keyed list lacks its key, or a directive makes no sense.
    Applying the same patch twice gives the same as applying it once, if no list repeats a merge key.
    """
    below = _merge_objects({}, copy.deepcopy(base or {}), POD, "")
    return _merge_objects(below, copy.deepcopy(patch or {}), POD, "")


def _merge_objects(base: Object, patch: Object, schema: Schema, path: str) -> Object:
    how = strategy(patch, path)
    if how == "delete":
        return {}
    edits = field_edits(patch, path)
    result = {} if how == "replace" else retained(base, patch, edits, path)
    for name, edit in edits.items():
        merged = _apply(result.get(name, UNSET), edit, schema.get(name), _join(path, name))
        if merged is UNSET:
            result.pop(name, None)
        else:
            result[name] = merged
    return result


def _apply(base: Any, edit: Edit, rule: Rule | None, path: str) -> Any:
    """The new value of one field, or UNSET when the field goes away."""
    if edit.value is None:
        return UNSET
    if edit.remove and isinstance(base, list):
        base = [value for value in base if value not in edit.remove]
    if edit.value is UNSET:
        merged = base
    elif isinstance(edit.value, dict):
        merged = _apply_object(base, edit.value, _inside(rule), path)
    elif isinstance(edit.value, list):
        merged = _merge_lists(base if isinstance(base, list) else [], edit.value, rule, path)
        _check_order(edit, rule, path)
    else:
        merged = edit.value
    if edit.order is not None and isinstance(merged, list):
        return _reorder(merged, edit.order, base if isinstance(base, list) else [], rule)
    return merged


def _apply_object(base: Any, patch: Object, schema: Schema, path: str) -> Any:
    if isinstance(base, dict):
        return _merge_objects(base, patch, schema, path)
    if strategy(patch, path) == "delete":
        return UNSET  # nothing there to empty
    return _merge_objects({}, patch, schema, path)


def _merge_lists(base: list[Any], patch: list[Any], rule: Rule | None, path: str) -> list[Any]:
    if isinstance(rule, KeyedList) and base:
        return _merge_keyed(base, patch, rule, path)
    fresh = _fresh_elements(patch, rule.item if isinstance(rule, KeyedList) else NO_RULES, path)
    if isinstance(rule, ValueSet):
        values = without_repeats(fresh)
        return interleave([value for value in base if value not in values], values, base)
    return fresh


def _fresh_elements(patch: list[Any], schema: Schema, path: str) -> list[Any]:
    """The elements of a list with nothing below it: nulls and directives carried out, and not a key looked at."""
    elements: list[Any] = []
    for index, element in enumerate(patch):
        if not isinstance(element, dict):
            elements.append(element)
        elif strategy(element, path) == "merge":
            elements.append(_merge_objects({}, element, schema, f"{path}[{index}]"))
    return elements


def _merge_keyed(base: list[Any], patch: list[Any], rule: KeyedList, path: str) -> list[Any]:
    below = [_identity(element, rule.key, f"{path}[{index}]") for index, element in enumerate(base)]
    elements = list(zip(below, base, strict=True))
    patched: list[Any] = []
    ways = [_element_strategy(element, f"{path}[{index}]") for index, element in enumerate(patch)]
    if "replace" in ways:
        elements = []
    for index, (element, how) in enumerate(zip(patch, ways, strict=True)):
        if how == "delete":
            gone = _identity(element, rule.key, f"{path}[{index}]")
            elements = [(identity, kept) for identity, kept in elements if identity != gone]
    base_order = [identity for identity, _ in elements]
    for index, (element, how) in enumerate(zip(patch, ways, strict=True)):
        if how == "merge":
            place = f"{path}[{index}]"
            identity = _identity(element, rule.key, place)
            patched.append(identity)
            elements = _put(elements, identity, element, rule, place)
    return _in_order(elements, without_repeats(patched), base_order)


def _put(
    elements: list[tuple[Any, Object]], identity: Any, patch: Object, rule: KeyedList, path: str
) -> list[tuple[Any, Object]]:
    """Merge the element into the first one of that identity, or append it."""
    for index, (known, below) in enumerate(elements):
        if known == identity:
            merged = _merge_objects(below, patch, rule.item, path)
            return [*elements[:index], (identity, merged), *elements[index + 1 :]]
    return [*elements, (identity, _merge_objects({}, patch, rule.item, path))]


def _in_order(elements: Sequence[tuple[Any, Any]], patched: Sequence[Any], base_order: Sequence[Any]) -> list[Any]:
    """The values of ``elements`` (identity, value); values that share an identity stay together, in their order."""
    present = without_repeats([identity for identity, _ in elements])
    mentioned = [identity for identity in patched if identity in present]
    base_only = [identity for identity in present if identity not in mentioned]
    order = interleave(base_only, mentioned, base_order)
    return [value for wanted in order for identity, value in elements if identity == wanted]


def _reorder(merged: list[Any], order: Sequence[Any], base: list[Any], rule: Rule | None) -> list[Any]:
    """Put the elements that ``$setElementOrder`` names in its order; the others keep their place in the base."""
    elements = [(_loose_identity(element, rule), element) for element in merged]
    return _in_order(
        elements,
        without_repeats([_loose_identity(entry, rule) for entry in order]),
        [_loose_identity(element, rule) for element in base] + [identity for identity, _ in elements],
    )


def _check_order(edit: Edit, rule: Rule | None, path: str) -> None:
    """Refuse a patch whose own list contradicts its ``$setElementOrder``."""
    if edit.order is None:
        return
    order = [_loose_identity(entry, rule) for entry in edit.order]
    given = [_loose_identity(element, rule) for element in edit.value if not _has_directive(element)]
    places = [order.index(identity) if identity in order else None for identity in given]
    if None in places or places != sorted(place for place in places if place is not None):
        raise InvalidPodPatch(path, "the order of the list does not match its $setElementOrder")


def _identity(element: Any, key: str, path: str) -> Any:
    if not isinstance(element, dict):
        raise InvalidPodPatch(path, "must be an object")
    if element.get(key) is None:
        raise InvalidPodPatch(path, f"{key!r} is missing, by which the elements of this list are merged")
    return element[key]


def _loose_identity(element: Any, rule: Rule | None) -> Any:
    if isinstance(rule, KeyedList) and isinstance(element, dict):
        return element.get(rule.key)
    return element


def _element_strategy(element: Any, path: str) -> str:
    return strategy(element, path) if isinstance(element, dict) else "merge"


def _has_directive(element: Any) -> bool:
    return isinstance(element, dict) and element.get(DIRECTIVE) in ("replace", "delete")


def _inside(rule: Rule | None) -> Schema:
    return NO_RULES if rule is None or isinstance(rule, KeyedList | ValueSet) else rule


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
