"""What failures are called, wherever they are told of."""

from __future__ import annotations

from typing import get_args

import pytest

from libs.events.failures import FailureType, failure_of, type_of
from libs.events.observations import FailureKind, ObservedPod


@pytest.mark.parametrize("kind", get_args(FailureKind))
def test_every_kind_has_a_name_except_the_one_that_is_none(kind: FailureKind) -> None:
    assert (type_of(kind) is None) == (kind == "")
    pod = ObservedPod(name="a", state="TERMINATED", failure=kind)
    assert failure_of(pod) == type_of(kind)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (ObservedPod(name="a", state="RUNNING"), None),
        (ObservedPod(name="a", state="TERMINATED", exit_code=0), None),
        (ObservedPod(name="a", state="TERMINATED", exit_code=1), FailureType.RESOURCES_FAILED),
        (ObservedPod(name="a", state="TERMINATED", failure="DELETED"), FailureType.RESOURCES_FAILED),
        (ObservedPod(name="a", state="TERMINATED", failure="DELETED", vanished=True), FailureType.TASK_ERROR),
    ],
    ids=["runs", "ended well", "its own exit code", "deleted by somebody", "gone without a word"],
)
def test_failure_of_a_pod(pod: ObservedPod, expected: FailureType | None) -> None:
    assert failure_of(pod) == expected
