"""What holds for any pod and any patch."""

from __future__ import annotations

import copy
import random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libs.podspec import merge_pod
from tests.unit.libs.podspec.pods import random_patch, random_pod

EXAMPLES = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
sources = st.randoms(use_true_random=True)


def layers(rng: random.Random) -> tuple[Any, Any]:
    base = random_pod(rng)
    return base, random_patch(rng, base)


@EXAMPLES
@given(sources)
def test_same_patch_twice_is_the_patch_once(rng: random.Random) -> None:
    base, patch = layers(rng)
    once = merge_pod(base, patch)
    assert merge_pod(once, patch) == once


@EXAMPLES
@given(sources)
def test_inputs_are_left_alone_and_not_shared(rng: random.Random) -> None:
    pair = layers(rng)
    before = copy.deepcopy(pair)
    merged = merge_pod(*pair)
    assert pair == before
    scribble(merged)
    assert pair == before


@EXAMPLES
@given(sources)
def test_pod_without_directives_is_its_own_result(rng: random.Random) -> None:
    pod = random_pod(rng)
    assert merge_pod(pod, {}) == merge_pod({}, pod) == merge_pod(None, pod) == merge_pod(pod, pod) == pod


@EXAMPLES
@given(sources)
def test_result_holds_neither_nulls_nor_directives(rng: random.Random) -> None:
    assert is_clean(merge_pod(*layers(rng)))


def is_clean(value: Any) -> bool:
    if isinstance(value, dict):
        return all(not key.startswith("$") and is_clean(element) for key, element in value.items())
    if isinstance(value, list):
        return all(is_clean(element) for element in value)
    return value is not None


def scribble(value: Any) -> None:
    for element in list(value.values() if isinstance(value, dict) else value):
        if isinstance(element, dict | list):
            scribble(element)
    if isinstance(value, dict):
        value["scribble"] = True
    else:
        value.append("scribble")
