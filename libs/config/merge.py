"""Merges two layers of experiment configuration: ``high`` wins, and ``low`` fills what it leaves open.

The rule is short (objects merge key by key, everything else is taken whole from the higher layer that has it), and the
table at the end lists every field with a rule of its own. Both sides have to be in normal form (experiment.py).

Source: docs/reference/experiments.md 1.6.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeAlias

from libs import podspec
from libs.config.parts import searcher, storage
from libs.config.parts.environment import SLOT_TYPES
from libs.config.parts.hyperparameters import is_nested_space
from libs.config.parts.log_policies import merge_log_policies
from libs.shapes.copies import copied
from libs.shapes.shape import Object

Merge: TypeAlias = Callable[[Any, Any], Any]
"""(high, low), neither of them None -> merged."""


def merge(high: Object, low: Object) -> Object:
    """``high`` over ``low``; both stay unchanged, and the result shares nothing with them.

    Raises podspec.InvalidPodPatch when the pod spec of ``high`` makes no sense as a patch.
    """
    merged: Object = _experiment(copied(high), copied(low))
    return merged


def _fill(high: Any, low: Any) -> Any:
    """The rule of fields that have no other: objects key by key, anything else whole."""
    return _object(high, low) if isinstance(high, dict) and isinstance(low, dict) else high


def _whole(high: Any, _: Any) -> Any:
    return high


def _object(high: Object, low: Object, rules: Mapping[str, Merge] | None = None) -> Object:
    """Key by key, where null is the same as nothing; the keys come in the order of ``low``."""
    return {
        key: _or_other((rules or {}).get(key, _fill), high.get(key), low.get(key))
        for key in [*low, *(key for key in high if key not in low)]
    }


def _or_other(rule: Merge, high: Any, low: Any) -> Any:
    if high is None or low is None:
        return low if high is None else high
    return rule(high, low)


def object_with(**rules: Merge) -> Merge:
    return lambda high, low: _object(high, low, rules)


def list_keyed_by(key: str) -> Merge:
    """All of ``high``, then the entries of ``low`` whose key is new."""

    def merge_lists(high: list[Object], low: list[Object]) -> list[Object]:
        known = {entry[key] for entry in high}
        return [*high, *(entry for entry in low if entry[key] not in known)]

    return merge_lists


def _concatenate_per_slot_type(high: Object, low: Object) -> Object:
    """``low`` first, since of two settings of a variable the later wins in the container."""
    return {
        slot_type: [*(low.get(slot_type) or []), *(high.get(slot_type) or [])]
        for slot_type in SLOT_TYPES
        if slot_type in high or slot_type in low
    }


def _joined_labels(high: list[str], low: list[str]) -> list[str]:
    return list(dict.fromkeys([*high, *low]))


def _pod_spec(high: Object, low: Object) -> Object:
    return podspec.merge_pod(low, high)


def _space(high: Any, low: Any) -> Any:
    """Hyperparameters are atomic, and nested spaces merge key by key."""
    if not (is_nested_space(high) and is_nested_space(low)):
        return high
    return _top_space(high, low)


def _top_space(high: Object, low: Object) -> Object:
    return _object(high, low, dict.fromkeys(low, _space))


def _union(tag: str, common: Collection[str], rule: Merge = _fill) -> Merge:
    """Common fields merge always, the fields of a member only with those of the same member or of none."""

    def merge_unions(high: Object, low: Object) -> Object:
        same = high.get(tag) in (None, low.get(tag)) or low.get(tag) is None
        merged: Object = rule(high, low if same else {key: low[key] for key in low if key in common and key != tag})
        return merged

    return merge_unions


def _storage_member(high: Object, low: Object) -> Object:
    """Azure credentials belong together: of two azure layers, they come all from one."""
    secrets = ("connection_string", "account_url", "credential")
    merged = _object(high, low)
    if not high.get("type") == low.get("type") == "azure":
        return merged
    own = any(high.get(key) is not None for key in ("connection_string", "account_url"))
    source = high if own else low
    others = {key: value for key, value in merged.items() if key not in secrets}
    return {**others, **{key: source[key] for key in secrets if key in source}}


_experiment: Final = object_with(
    bind_mounts=list_keyed_by("container_path"),
    checkpoint_storage=_union("type", storage.COMMON_FIELDS, _storage_member),
    environment=object_with(
        environment_variables=_concatenate_per_slot_type,
        pod_spec=_pod_spec,
        proxy_ports=list_keyed_by("proxy_port"),
    ),
    hyperparameters=_top_space,
    labels=_joined_labels,
    log_policies=merge_log_policies,
    min_checkpoint_period=_whole,
    min_validation_period=_whole,
    resources=object_with(devices=list_keyed_by("container_path"), topology=_whole),
    searcher=_union("name", searcher.COMMON_FIELDS, object_with(max_length=_whole)),
)
