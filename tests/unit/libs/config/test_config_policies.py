"""Config policies: limits, and values that nobody may change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from libs.config import (
    check_constraints,
    check_fallback_pools,
    check_max_slots_change,
    check_priority_change,
    check_weight_change,
    parse_experiment_policies,
    parse_task_policies,
)
from libs.errors import InvalidRequest


def limit(slots: int | None = None, priority: int | None = None) -> dict[str, Any]:
    return {"resources": {"max_slots": slots}, "priority_limit": priority}


SLOT_TEXT = "requested resources.{} [8] exceeds limit set by admin [4]: submitted workload failed a resource constraint"
CONSTRAINTS: list[tuple[str, dict[str, Any], Any, Any, str | None]] = [
    ("no policies", {"slots_per_trial": 8, "priority": 1}, None, None, None),
    ("slots at the limit", {"slots_per_trial": 4}, limit(4), None, None),
    ("slots over the limit", {"slots_per_trial": 8}, limit(4), None, SLOT_TEXT.format("slots")),
    ("slots of a task", {"slots": 8}, limit(4), None, SLOT_TEXT.format("slots")),
    ("max_slots", {"slots_per_trial": 1, "max_slots": 8}, limit(4), None, SLOT_TEXT.format("max_slots")),
    ("max_slots unset", {"slots_per_trial": 1, "max_slots": None}, limit(4), None, None),
    ("global limit counts", {"slots_per_trial": 8}, limit(8), limit(4), SLOT_TEXT.format("slots")),
    ("global limit counts, also if larger", {"slots_per_trial": 8}, limit(4), limit(8), None),
    ("field by field", {"slots_per_trial": 8}, limit(4), limit(priority=9), SLOT_TEXT.format("slots")),
    ("priority", {"priority": 60}, limit(priority=60), None, None),
    (
        "priority over the limit",
        {"priority": 60},
        limit(priority=50),
        None,
        "requested priority [60] exceeds limit set by admin [50]: submitted workload failed priority constraint",
    ),
]


@pytest.mark.parametrize("case", CONSTRAINTS, ids=[case[0] for case in CONSTRAINTS])
def test_workload_stays_within_its_limits(case: tuple[str, dict[str, Any], Any, Any, str | None]) -> None:
    _, resources, workspace, global_, message = case
    if message is None:
        check_constraints(resources, workspace=workspace, global_=global_)
        return
    with pytest.raises(InvalidRequest) as caught:
        check_constraints(resources, workspace=workspace, global_=global_)
    assert str(caught.value) == message


def test_priority_limit_follows_the_direction_of_the_scheduler() -> None:
    limits = {"workspace": limit(priority=50), "global_": None}
    check_constraints({"priority": 60}, larger_priority_first=False, **limits)
    with pytest.raises(InvalidRequest):
        check_constraints({"priority": 40}, larger_priority_first=False, **limits)


def policies(constraints: Any = None, **resources: Any) -> dict[str, Any]:
    return {"invariant_config": {"resources": resources}, "constraints": constraints}


CHANGES: list[tuple[str, Callable[..., None], float, Any, Any, str | None]] = [
    ("free priority", check_priority_change, 9, None, None, None),
    ("fixed priority", check_priority_change, 9, policies(priority=9), None, None),
    ("other priority", check_priority_change, 8, policies(priority=9), None, "priority cannot be modified"),
    ("global priority first", check_priority_change, 9, policies(priority=9), policies(priority=8), "cannot be"),
    (
        "limited priority",
        check_priority_change,
        9,
        None,
        policies(limit(priority=8)),
        "priority exceeds task config policy's priority_limit",
    ),
    ("fixed before limited", check_priority_change, 9, policies(priority=9), policies(limit(priority=8)), None),
    ("fixed weight", check_weight_change, 2, policies(weight=2), None, None),
    (
        "other weight",
        check_weight_change,
        3,
        policies(weight=2),
        None,
        "weight is enforced as an invariant config policy of 2",
    ),
    ("fixed max_slots", check_max_slots_change, 2, policies(max_slots=2), None, None),
    (
        "other max_slots",
        check_max_slots_change,
        3,
        policies(max_slots=2),
        None,
        "max slots is already set in an invariant config policy",
    ),
    (
        "limited max_slots",
        check_max_slots_change,
        3,
        policies(limit(2)),
        None,
        "requested slots is violates max slots constraint",
    ),
]


@pytest.mark.parametrize("case", CHANGES, ids=[case[0] for case in CHANGES])
def test_later_changes_keep_to_the_policies(
    case: tuple[str, Callable[..., None], float, Any, Any, str | None],
) -> None:
    _, check, value, workspace, global_, message = case
    if message is None:
        check(value, workspace=workspace, global_=global_)
        return
    with pytest.raises(InvalidRequest) as caught:
        check(value, workspace=workspace, global_=global_)
    assert message in str(caught.value)


def test_policies_are_kept_as_written() -> None:
    text = "invariant_config: {environment: {image: x}, description: d}\nconstraints: {resources: {max_slots: 4}}"
    assert parse_experiment_policies(text) == {
        "invariant_config": {"environment": {"image": "x"}, "description": "d"},
        "constraints": {"resources": {"max_slots": 4}},
    }
    assert parse_experiment_policies("{}") == {}
    assert parse_task_policies("constraints: {priority_limit: 4}") == {"constraints": {"priority_limit": 4}}


BAD_POLICIES = [
    (parse_experiment_policies, "x: 1", 'invalid experiment config policy: <config>: additionalProperties "x"'),
    (parse_experiment_policies, "a: [", "invalid experiment config policy: invalid YAML: line"),
    (parse_experiment_policies, "constraints: {slots: 1}", 'additionalProperties "slots" not allowed'),
    (parse_experiment_policies, "invariant_config: {x: 1}", 'additionalProperties "x" not allowed'),
    (
        parse_experiment_policies,
        "{invariant_config: {resources: {priority: 3}}, constraints: {priority_limit: 4}}",
        "invariant priority (3) and priority_limit (4) are different",
    ),
    (
        parse_experiment_policies,
        "{invariant_config: {resources: {max_slots: 3}}, constraints: {resources: {max_slots: 4}}}",
        "are different",
    ),
    (
        parse_experiment_policies,
        "{invariant_config: {resources: {slots_per_trial: 5}}, constraints: {resources: {max_slots: 4}}}",
        "invariant slots_per_trial (5) is greater than",
    ),
    (parse_task_policies, "constraints: {x: 1}", "invalid ntsc config policy: "),
    (
        parse_task_policies,
        "invariant_config: {}",
        "not supported: invariant config policies for tasks is not yet supported, ",
    ),
]


@pytest.mark.parametrize(("parse", "text", "message"), BAD_POLICIES, ids=[text for _, text, _ in BAD_POLICIES])
def test_bad_policies_are_refused(parse: Callable[[str], Any], text: str, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(text)
    assert message in str(caught.value)


_CHEAP = {"invariant_config": {"resources": {"resource_pool": "cheap"}}}
_WITH_FALLBACK = {"invariant_config": {"resources": {"resource_pool": "cheap", "fallback_pools": ["spare"]}}}
_FALLBACK_ONLY = {"invariant_config": {"resources": {"fallback_pools": ["spare"]}}}
_OTHERS = {"invariant_config": {"max_restarts": 1}}


@pytest.mark.parametrize(
    ("workspace", "global_"),
    [(None, None), (_OTHERS, _OTHERS), (_WITH_FALLBACK, None), (None, _WITH_FALLBACK), (_CHEAP, _FALLBACK_ONLY)],
)
def test_fallback_pools_beside_a_pool_that_is_free_or_comes_with_them(workspace: Any, global_: Any) -> None:
    check_fallback_pools({"fallback_pools": [{"pool": "spare", "after": 0}]}, workspace=workspace, global_=global_)


@pytest.mark.parametrize(
    ("workspace", "global_"), [(_CHEAP, None), (None, _CHEAP), (_CHEAP, _OTHERS), (_FALLBACK_ONLY, _CHEAP)]
)
def test_fallback_pools_are_no_way_past_a_fixed_pool(workspace: Any, global_: Any) -> None:
    check_fallback_pools({"resource_pool": "cheap"}, workspace=workspace, global_=global_)
    with pytest.raises(InvalidRequest, match=r"^resources\.fallback_pools must be empty: .* policy to cheap$"):
        check_fallback_pools({"fallback_pools": [{"pool": "spare", "after": 0}]}, workspace=workspace, global_=global_)
