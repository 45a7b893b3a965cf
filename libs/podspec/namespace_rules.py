"""Refuses what a user's pod may not name or join in the namespace that it runs in. Pure.

These rules hold for the part of a pod that comes from users, before the administrator's defaults are merged below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from libs.podspec.references import Reference, is_allowed, is_made_for_tasks, references
from libs.podspec.reserved_labels import reserved


class NamespaceRules(NamedTuple):
    """What holds for one task."""

    namespace: str
    beside_release: bool
    """Whether the services of an installation run in the namespace too, with their Secrets."""
    references: tuple[str, ...]
    """Patterns of objects that may be referred to there."""
    labels: tuple[str, ...]
    """Patterns of labels and annotations that may be set although they are reserved."""


def violations(pod: Mapping[str, Any], rules: NamespaceRules) -> list[str]:
    """A sentence for everything in a user's ``pod`` that breaks the rules: the field, why, and the setting."""
    return [*_labels(pod, rules), *reference_violations(pod, rules)]


def references_to_made(pod: Mapping[str, Any]) -> list[Reference]:
    """References to the Secrets and ConfigMaps that launchers make for tasks, which are for nobody, anywhere."""
    return [reference for reference in references(pod) if is_made_for_tasks(reference)]


def _labels(pod: Mapping[str, Any], rules: NamespaceRules) -> Iterator[str]:
    for path in reserved(pod, rules.labels):
        yield f"{path} is reserved: services and policies select pods by it; security.pod_labels can allow it"


def reference_violations(pod: Mapping[str, Any], rules: NamespaceRules) -> Iterator[str]:
    """Of these the ones that depend on the namespace, which may be another one when the pod is made."""
    for reference in references(pod):
        if is_made_for_tasks(reference):
            yield f"{reference.path} refers to {reference}, which is named like what is made for tasks"
        elif rules.beside_release and not is_allowed(reference, rules.references):
            named = str(reference) if reference.name else f"a {reference.kind} that it does not name"
            yield (
                f"{reference.path} refers to {named} in the namespace {rules.namespace}, where the services of this "
                "installation run; security.references can allow it"
            )
