"""Refuses pod specs of users that set what the launcher sets.

One table for every place a pod spec can come from: experiments, other tasks, and the defaults of the cluster. The
snake_case spellings are no Kubernetes fields; they are refused by name, since the reference names them so.

Source: docs/reference/kubernetes.md 5.1 and 5.2; docs/reference/experiments.md 1.3 (environment.pod_spec).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

MAIN_CONTAINER: Final = "determined-container"


class ForbiddenSetting(NamedTuple):
    """One forbidden setting."""

    path: str
    """Of the object that holds it, relative to the pod: ``""``, ``".metadata"``, ``".spec.containers[1]"``."""
    message: str
    detail: str
    """What was found instead of nothing; task configs append it to the message."""


class _Rule(NamedTuple):
    fields: tuple[str, ...]
    message: str
    detail: Callable[[Any], str]


def _not_empty(value: Any) -> str:
    return f"{value} does not equal "


def _not_zero(value: Any) -> str:
    return f"{len(value) if isinstance(value, list) else 1} does not equal 0"


def _not_null(_: Any) -> str:
    return "expected true, got false"


def _not_false(_: Any) -> str:
    return "expected false, got true"


def _no_match(value: Any) -> str:
    return f"{value} doesn't match regex "


_CONFIG: Final = ", set it in the experiment config"
_NAME: Final = _Rule(("name",), "pod Name is not a configurable option", _not_empty)
_NAMESPACE: Final = _Rule(("namespace",), "pod Namespace is not a configurable option", _not_empty)
_NAME_SPACE: Final = _Rule(("name_space",), "pod NameSpace is not a configurable option", _not_empty)

_POD: Final = (_NAME, _NAME_SPACE)
_METADATA: Final = (_NAME, _NAMESPACE, _NAME_SPACE)
_SPEC: Final = (_Rule(("hostNetwork",), "host networking must be configured via master.yaml", _not_false),)
_CONTAINER: Final = (
    _Rule(("image",), f"container Image is not configurable{_CONFIG}", _not_empty),
    _Rule(("command",), "container Command is not configurable", _not_zero),
    _Rule(("args",), "container Args are not configurable", _not_zero),
    _Rule(("workingDir", "working_dir"), "container WorkingDir is not configurable", _not_empty),
    _Rule(("ports",), "container Ports are not configurable", _not_zero),
    _Rule(("livenessProbe", "liveness_probe"), "container LivenessProbe is not configurable", _not_null),
    _Rule(("readinessProbe", "readiness_probe"), "container ReadinessProbe is not configurable", _not_null),
    _Rule(("startupProbe", "startup_probe"), "container StartupProbe is not configurable", _not_null),
    _Rule(("lifecycle",), "container Lifecycle is not configurable", _not_null),
    _Rule(
        ("terminationMessagePath", "termination_message_path"),
        "container TerminationMessagePath is not configurable",
        _no_match,
    ),
    _Rule(
        ("terminationMessagePolicy", "termination_message_policy"),
        "container TerminationMessagePolicy is not configurable",
        _no_match,
    ),
    _Rule(
        ("imagePullPolicy", "image_pull_policy"),
        f"container ImagePullPolicy is not configurable{_CONFIG}",
        _no_match,
    ),
    # securityContext itself is honoured; only this spelling, which Kubernetes would drop unseen, is refused.
    _Rule(("security_context",), f"container SecurityContext is not configurable{_CONFIG}", _not_null),
)


def refusals(pod: Mapping[str, Any]) -> list[ForbiddenSetting]:
    """Everything in ``pod`` that its author may not set, in the order of the pod.

    A container without a name counts as the main one, since that is where its settings would have to go.
    """
    spec = _object(pod.get("spec"))
    found = [
        *_check(pod, _POD, ""),
        *_check(_object(pod.get("metadata")), _METADATA, ".metadata"),
        *_check(spec, _SPEC, ".spec"),
    ]
    containers = spec.get("containers")
    for index, container in enumerate(containers if isinstance(containers, list) else []):
        if _object(container).get("name", MAIN_CONTAINER) == MAIN_CONTAINER:
            found += _check(_object(container), _CONTAINER, f".spec.containers[{index}]")
    return found


def _check(holder: Mapping[str, Any], rules: tuple[_Rule, ...], path: str) -> list[ForbiddenSetting]:
    return [
        ForbiddenSetting(path, rule.message, rule.detail(holder[field]))
        for rule in rules
        for field in rule.fields
        if _is_set(holder.get(field), rule)
    ]


def _is_set(value: Any, rule: _Rule) -> bool:
    """Objects count when they are there at all; values that equal the Kubernetes zero value do not count."""
    return value is not None if rule.detail is _not_null else bool(value)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
