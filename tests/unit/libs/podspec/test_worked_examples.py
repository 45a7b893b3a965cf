"""The worked merge examples of docs/reference/kubernetes.md 6.3, as pods over pods."""

from __future__ import annotations

import copy
from operator import attrgetter

import pytest

from libs.podspec import merge_pod
from tests.scenarios.pod_merges import EXAMPLES, Example


@pytest.mark.parametrize("example", EXAMPLES, ids=attrgetter("name"))
def test_worked_example(example: Example) -> None:
    before = copy.deepcopy(example)
    assert merge_pod(example.base, example.patch) == example.result
    assert example == before


@pytest.mark.parametrize("example", EXAMPLES, ids=attrgetter("name"))
def test_same_patch_twice_changes_nothing_more(example: Example) -> None:
    assert merge_pod(example.result, example.patch) == example.result
