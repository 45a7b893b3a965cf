"""Kubernetes strategic merge of pods: a patch of one layer over the pod of the layer below.

Objects merge field by field, null deletes, lists with a merge key merge element by element, other lists are replaced.
A field that the patch does not mention stays as it is, ``containers`` included. The result holds no directives and no
nulls, whatever the inputs were: a layer without anything below it is cleaned by merging it over nothing.

Differences from ``kubectl patch``, where that is surprising: ``$patch: merge`` is allowed; ``$patch: replace`` on a
field the base lacks gives its content rather than nothing; nulls and directives inside a new element or an atomic list
are carried out rather than copied.

Source: https://github.com/kubernetes/community, sig-api-machinery/strategic-merge-patch.md;
docs/reference/kubernetes.md 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

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
from libs.podspec.lists import Identity, identity_of, interleave
from libs.podspec.merge_keys import NO_RULES, POD, KeyedList, Rule, Schema, ValueSet, inside
from libs.shapes.copies import copied

__all__ = ["InvalidPodPatch", "merge_pod", "task_pod"]

_COMPLETE: Final = ("TRIAL", "CHECKPOINT_GC")
"""Types of tasks whose stored pod has the defaults of its pool in it, as they were when it was stored."""


def merge_pod(base: Object | None, patch: Object | None) -> Object:
    """Apply ``patch`` (the layer that wins) over ``base``; None is an empty pod. Both are left unchanged.

    Raises InvalidPodPatch when an element of a keyed list lacks its key, or a directive makes no sense.
    Applying the same patch twice gives the same as applying it once, if no list repeats a merge key.
    """
    below = _merge_objects({}, copied(base or {}), POD, "")
    return _merge_objects(below, copied(patch or {}), POD, "")


def task_pod(task_type: str, defaults: Object | None, own: Object | None) -> Object:
    """The pod that a task's user and the pool's administrator ask for, as one; no nulls, no directives.

    defaults  of the pool, for tasks with slots or for those without
    own       what is stored of the task
    Raises InvalidPodPatch.
    """
    return merge_pod(None if task_type in _COMPLETE else defaults, own)


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
        gone = {identity_of(value) for value in edit.remove}
        base = [value for value in base if identity_of(value) not in gone]
    if edit.value is UNSET:
        merged = base
    elif isinstance(edit.value, dict):
        merged = _apply_object(base, edit.value, inside(rule), path)
    elif isinstance(edit.value, list):
        merged = _merge_lists(base if isinstance(base, list) else [], edit.value, rule, path)
        check_order(edit, rule, path)
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
    return _merge_values(base, fresh) if isinstance(rule, ValueSet) else fresh


def _merge_values(base: list[Any], patch: list[Any]) -> list[Any]:
    values = {identity_of(value): value for value in [*base, *patch]}
    order = interleave(values, map(identity_of, patch), map(identity_of, base))
    return [values[identity] for identity in order]


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
    """Merge into the first element of the same key, where there is one; deletions come before additions."""
    ways = [_element_strategy(element, f"{path}[{index}]") for index, element in enumerate(patch)]
    groups: dict[Identity, list[Any]] = {}  # elements that share a key stay together
    for index, element in enumerate([] if "replace" in ways else base):
        groups.setdefault(_key_of(element, rule, f"{path}[{index}]"), []).append(element)
    for index, element in enumerate(patch):
        if ways[index] == "delete":
            groups.pop(_key_of(element, rule, f"{path}[{index}]"), None)
    left, patched = list(groups), []
    for index, element in enumerate(patch):
        if ways[index] == "merge":
            place = f"{path}[{index}]"
            patched.append(_key_of(element, rule, place))
            known = groups.setdefault(patched[-1], [{}])
            known[0] = _merge_objects(known[0], element, rule.item, place)
    return [element for identity in interleave(groups, patched, left) for element in groups[identity]]


def _reorder(merged: list[Any], order: Sequence[Any], base: list[Any], rule: Rule | None) -> list[Any]:
    """Put the elements that ``$setElementOrder`` names in its order; the others keep their place in the base."""
    groups: dict[Identity, list[Any]] = {}
    for element in merged:
        groups.setdefault(_loose_key(element, rule), []).append(element)
    wanted, known = [_loose_key(entry, rule) for entry in order], [_loose_key(element, rule) for element in base]
    return [element for identity in interleave(groups, wanted, known) for element in groups[identity]]


def check_order(edit: Edit, rule: Rule | None, path: str) -> None:
    """Refuse a patch whose own list contradicts its ``$setElementOrder``."""
    if edit.order is None:
        return
    places = {_loose_key(entry, rule): place for place, entry in enumerate(edit.order)}
    given = [places.get(_loose_key(element, rule)) for element in edit.value if not _has_directive(element)]
    if None in given or given != sorted(place for place in given if place is not None):
        raise InvalidPodPatch(path, "the order of the list does not match its $setElementOrder")


def _key_of(element: Any, rule: KeyedList, path: str) -> Identity:
    if not isinstance(element, dict):
        raise InvalidPodPatch(path, "must be an object")
    if element.get(rule.key) is None:
        raise InvalidPodPatch(path, f"{rule.key!r} is missing, by which the elements of this list are merged")
    return identity_of(element[rule.key])


def _loose_key(element: Any, rule: Rule | None) -> Identity:
    """Like ``_key_of``, for lists of any kind, and for elements that were checked before."""
    if isinstance(rule, KeyedList) and isinstance(element, dict):
        return identity_of(element.get(rule.key))
    return identity_of(element)


def _element_strategy(element: Any, path: str) -> str:
    return strategy(element, path) if isinstance(element, dict) else "merge"


def _has_directive(element: Any) -> bool:
    return isinstance(element, dict) and element.get(DIRECTIVE) in ("replace", "delete")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
