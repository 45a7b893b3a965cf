"""Config policies: what admins fix for every experiment of a workspace or of the cluster, and what they limit.

Invariants are layers of configuration that win over the user's: first the workspace's, then the global one on top.
Constraints are limits; of two, the global one counts.

Source: docs/reference/experiments.md 1.8; docs/reference/scheduling.md 9.4; docs/reference/tasks-and-cli.md 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from libs.config.experiment import normalise_experiment_config
from libs.config.merge import merge
from libs.config.yaml_text import InvalidText, parse_text
from libs.errors import InvalidRequest
from libs.shapes.problems import ROOT, Problem, listing
from libs.shapes.shape import Object, Shape, anything, map_of, record, whole

_CONSTRAINTS: Final = record(
    {"priority_limit": whole(), "resources": record({"max_slots": whole(0)})},
)
_EXPERIMENT_POLICIES: Final = record({"invariant_config": map_of(anything), "constraints": _CONSTRAINTS})
_TASK_POLICIES: Final = record({"constraints": _CONSTRAINTS})


def parse_experiment_policies(text: str) -> Object:
    """``{invariant_config, constraints}``, either of which may be missing, as written: people read them back.

    Raises InvalidRequest, also when invariants and constraints of these policies contradict each other.
    """
    prefix = "invalid experiment config policy: "
    policies = _shaped(_text_value(text, prefix), _EXPERIMENT_POLICIES, prefix)
    try:
        invariant = normalise_experiment_config(policies.get("invariant_config", {}))
    except InvalidRequest as error:
        raise InvalidRequest(f"{prefix}{error}") from error
    check_consistent(invariant, [policies.get("constraints")])
    return policies


def parse_task_policies(text: str) -> Object:
    """``{constraints}`` for commands, notebooks, shells and TensorBoards, which know no invariants."""
    prefix = "invalid ntsc config policy: "
    value = _text_value(text, prefix)
    if isinstance(value, dict) and value.get("invariant_config") is not None:
        raise InvalidRequest(
            "not supported: invariant config policies for tasks is not yet supported, "
            "please remove `invariant_config` section and try again"
        )
    return _shaped(value, _TASK_POLICIES, prefix)


def apply_invariants(config: Object, invariants: Iterable[Mapping[str, Any]]) -> Object:
    """``config`` under its invariants, lowest priority first: the workspace's, then the global ones.

    Raises InvalidConfig when an invariant is no configuration.
    """
    for invariant in invariants:
        config = merge(normalise_experiment_config(invariant), config)
    return config


def effective_constraints(
    workspace: Mapping[str, Any] | None, global_: Mapping[str, Any] | None
) -> tuple[int | None, int | None]:
    """(limit of slots, limit of priority): field by field, the global one if there is one."""
    in_order = [constraints for constraints in (global_, workspace) if constraints]
    slots = [(constraints.get("resources") or {}).get("max_slots") for constraints in in_order]
    priorities = [constraints.get("priority_limit") for constraints in in_order]
    return _first(slots), _first(priorities)


def check_constraints(
    resources: Mapping[str, Any],
    *,
    workspace: Mapping[str, Any] | None,
    global_: Mapping[str, Any] | None,
    larger_priority_first: bool = True,
) -> None:
    """Raise InvalidRequest when what a workload asks for is more than its policies allow.

    resources              of an experiment (``slots_per_trial``) or of another task (``slots``), after defaults
    larger_priority_first  whether the larger number starts first, as on Kubernetes
    """
    slot_limit, priority_limit = effective_constraints(workspace, global_)
    for key, shown in (("slots_per_trial", "slots"), ("slots", "slots"), ("max_slots", "max_slots")):
        asked = resources.get(key)
        if slot_limit is not None and asked is not None and asked > slot_limit:
            raise InvalidRequest(
                f"requested resources.{shown} [{asked}] exceeds limit set by admin [{slot_limit}]: "
                "submitted workload failed a resource constraint"
            )
    priority = resources.get("priority")
    if not _priority_allowed(priority, priority_limit, larger_priority_first):
        raise InvalidRequest(
            f"requested priority [{priority}] exceeds limit set by admin [{priority_limit}]: "
            "submitted workload failed priority constraint"
        )


def check_consistent(invariant: Mapping[str, Any] | None, constraints: Iterable[Mapping[str, Any] | None]) -> None:
    """Raise InvalidRequest when an invariant config breaks a constraint of its own scope or of the global one."""
    resources = (invariant or {}).get("resources") or {}
    for limits in constraints:
        limit = ((limits or {}).get("resources") or {}).get("max_slots")
        priority_limit = (limits or {}).get("priority_limit")
        if _both_and_different(resources.get("priority"), priority_limit):
            raise InvalidRequest(
                f"invalid experiment config policy: invariant priority ({resources['priority']}) and "
                f"priority_limit ({priority_limit}) are different"
            )
        if _both_and_different(resources.get("max_slots"), limit):
            raise InvalidRequest(
                f"invalid experiment config policy: invariant max_slots ({resources['max_slots']}) and "
                f"the constraint max_slots ({limit}) are different"
            )
        slots = resources.get("slots_per_trial")
        if slots is not None and limit is not None and slots > limit:
            raise InvalidRequest(
                f"invalid experiment config policy: invariant slots_per_trial ({slots}) is greater than "
                f"the constraint max_slots ({limit})"
            )


def check_priority_change(
    priority: int,
    *,
    workspace: Mapping[str, Any] | None,
    global_: Mapping[str, Any] | None,
    larger_priority_first: bool = True,
) -> None:
    """Raise InvalidRequest unless a job may get this priority; the arguments are whole policies of each scope."""
    fixed = _fixed_resource("priority", workspace, global_)
    if fixed is not None:
        if priority != fixed:
            raise InvalidRequest("priority set by invariant config: priority cannot be modified")
        return
    _, limit = effective_constraints((workspace or {}).get("constraints"), (global_ or {}).get("constraints"))
    if not _priority_allowed(priority, limit, larger_priority_first):
        raise InvalidRequest("priority exceeds task config policy's priority_limit")


def check_weight_change(
    weight: float, *, workspace: Mapping[str, Any] | None, global_: Mapping[str, Any] | None
) -> None:
    """Raise InvalidRequest unless an experiment may get this weight."""
    fixed = _fixed_resource("weight", workspace, global_)
    if fixed is not None and weight != fixed:
        raise InvalidRequest(f"weight is enforced as an invariant config policy of {fixed}")


def check_max_slots_change(
    max_slots: int | None, *, workspace: Mapping[str, Any] | None, global_: Mapping[str, Any] | None
) -> None:
    """Raise InvalidRequest unless an experiment may get this limit of slots; None is no limit of its own."""
    fixed = _fixed_resource("max_slots", workspace, global_)
    if fixed is not None and max_slots != fixed:
        raise InvalidRequest(f"max slots is already set in an invariant config policy to {fixed}")
    limit, _ = effective_constraints((workspace or {}).get("constraints"), (global_ or {}).get("constraints"))
    if limit is not None and max_slots is not None and max_slots > limit:
        raise InvalidRequest(f"requested slots is violates max slots constraint of {limit}")


def check_pool_change(pool: str, *, workspace: Mapping[str, Any] | None, global_: Mapping[str, Any] | None) -> None:
    """Raise InvalidRequest unless an experiment may move to this pool."""
    fixed = _fixed_resource("resource_pool", workspace, global_)
    if fixed is not None and pool != fixed:
        raise InvalidRequest(f"resource pool is already set in an invariant config policy to {fixed}")


def check_fallback_pools(
    resources: Mapping[str, Any], *, workspace: Mapping[str, Any] | None, global_: Mapping[str, Any] | None
) -> None:
    """Raise InvalidRequest where ``resources`` fall back on pools beside the one that an invariant config fixes.

    What the same scope or the one above it says of fallback pools is no way past it.
    resources  of a complete configuration
    """
    if not resources.get("fallback_pools"):
        return
    for policies in (global_, workspace):
        fixed = ((policies or {}).get("invariant_config") or {}).get("resources") or {}
        if fixed.get("fallback_pools") is not None:
            return
        if (pool := fixed.get("resource_pool")) is not None:
            raise InvalidRequest(
                "resources.fallback_pools must be empty: resource pool is already set in an invariant config policy "
                f"to {pool}"
            )


def _fixed_resource(key: str, workspace: Mapping[str, Any] | None, global_: Mapping[str, Any] | None) -> Any:
    invariants = [(policies or {}).get("invariant_config") or {} for policies in (global_, workspace)]
    return _first([(invariant.get("resources") or {}).get(key) for invariant in invariants])


def _priority_allowed(priority: int | None, limit: int | None, larger_priority_first: bool) -> bool:
    if priority is None or limit is None:
        return True
    return priority <= limit if larger_priority_first else priority >= limit


def _both_and_different(one: Any, other: Any) -> bool:
    return one is not None and other is not None and one != other


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def _text_value(text: str, prefix: str) -> Any:
    try:
        return parse_text(text)
    except InvalidText as error:
        raise InvalidRequest(f"{prefix}{error}") from error


def _shaped(value: Any, shape: Shape, prefix: str) -> Object:
    read = shape(value, ROOT)
    problems: tuple[Problem, ...] = read.problems
    if problems:
        raise InvalidRequest(f"{prefix}{listing(problems)}")
    policies: Object = read.value
    return policies
