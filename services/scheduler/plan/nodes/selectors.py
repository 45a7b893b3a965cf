"""Selectors of nodes: the terms of a required node affinity.

What the API server would refuse in a term, such as ``In`` without values, matches no node here.
Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#NodeSelectorTerm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

NAME_FIELD: Final = "metadata.name"
"""The one field of a node that terms may select by."""
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT64: Final = range(-(2**63), 2**63)


class SelectorRequirement(Struct, frozen=True, gc=False):
    key: str
    operator: str
    """``In``, ``NotIn``, ``Exists``, ``DoesNotExist``, ``Gt`` or ``Lt``."""
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.operator:
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"no {self.key}"
            case "Gt" | "Lt":
                return f"{self.key} {'>' if self.operator == 'Gt' else '<'} {', '.join(self.values)}"
            case "In" if len(self.values) == 1:
                return f"{self.key}={self.values[0]}"
            case _:
                return f"{self.key} {'in' if self.operator == 'In' else 'not in'} ({', '.join(self.values)})"


class SelectorTerm(Struct, frozen=True, gc=False):
    """All requirements of a term have to hold; a term without any matches no node."""

    labels: tuple[SelectorRequirement, ...] = ()
    fields: tuple[SelectorRequirement, ...] = ()

    def __str__(self) -> str:
        return " and ".join(str(each) for each in (*self.labels, *self.fields))


def matches_term(term: SelectorTerm, labels: Mapping[str, str], name: str) -> bool:
    """Whether a node with these labels and this name has all that a term requires."""
    if not term.labels and not term.fields:
        return False
    return all(_holds(each, labels) for each in term.labels) and all(_holds_of_name(each, name) for each in term.fields)


def _holds(requirement: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    value, wanted = labels.get(requirement.key), requirement.values
    match requirement.operator:
        case "In":
            return value is not None and value in wanted
        case "NotIn":
            return bool(wanted) and value not in wanted
        case "Exists":
            return not wanted and value is not None
        case "DoesNotExist":
            return not wanted and value is None
        case "Gt" | "Lt":
            return len(wanted) == 1 and _compares(requirement.operator, _integer(value), _integer(wanted[0]))
        case _:
            return False


def _compares(operator: str, left: int | None, right: int | None) -> bool:
    if left is None or right is None:
        return False
    return left > right if operator == "Gt" else left < right


def _holds_of_name(requirement: SelectorRequirement, name: str) -> bool:
    if requirement.key != NAME_FIELD or len(requirement.values) != 1:
        return False
    match requirement.operator:
        case "In":
            return name == requirement.values[0]
        case "NotIn":
            return name != requirement.values[0]
        case _:
            return False


def _integer(text: str | None) -> int | None:
    """As Go reads an int64: Python would also take spaces, underscores and digits of other scripts."""
    if text is None or _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if number in _INT64 else None
