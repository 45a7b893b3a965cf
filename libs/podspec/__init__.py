"""Pod specs that users write: how layers of them are merged, and what they may not set.

Source: docs/reference/kubernetes.md 5 and 6.
"""

from libs.podspec.defaults import changes_of_defaults
from libs.podspec.fields import UnknownField, unknown_fields
from libs.podspec.lenient_directives import without_senseless_directives
from libs.podspec.merge import InvalidPodPatch, merge_pod, task_pod
from libs.podspec.namespace_rules import NamespaceRules, reference_violations, references_to_made, violations
from libs.podspec.refusals import MAIN_CONTAINER, ForbiddenSetting, refusals
from libs.podspec.standards import (
    ADD_CAPABILITIES,
    NodeRules,
    PodSpecMode,
    asked_of_nodes,
    capability_refusals,
    host_path_refusal,
)

__all__ = [
    "ADD_CAPABILITIES",
    "MAIN_CONTAINER",
    "ForbiddenSetting",
    "InvalidPodPatch",
    "NamespaceRules",
    "NodeRules",
    "PodSpecMode",
    "UnknownField",
    "asked_of_nodes",
    "capability_refusals",
    "changes_of_defaults",
    "host_path_refusal",
    "merge_pod",
    "reference_violations",
    "references_to_made",
    "refusals",
    "task_pod",
    "unknown_fields",
    "violations",
    "without_senseless_directives",
]
