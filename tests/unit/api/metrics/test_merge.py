"""The same step reported again (docs/reference/experiments.md 9.1)."""

from __future__ import annotations

import pytest

from libs.errors import InvalidRequest
from services.api.metrics.groups import Kind
from services.api.metrics.merge import Measured, from_document, merge, to_document


def test_keys_are_united() -> None:
    merged = merge(Measured({"a": 1}), Measured({"a": 1, "b": "NaN"}))
    assert merged.whole.avg == {"a": 1, "b": "NaN"}
    assert merged.added == {"b": "NaN"}
    assert merged.changed


def test_a_repeated_request_changes_nothing() -> None:
    report = Measured({"a": 1.0}, [{"a": 0.5}])
    merged = merge(report, Measured({"a": 1}, [{"a": 0.5}]))
    assert (merged.changed, merged.added, merged.whole) == (False, {}, report)


def test_batch_metrics_may_come_later() -> None:
    merged = merge(Measured({"a": 1}), Measured({}, [{"a": 0.5}]))
    assert merged.changed
    assert merged.whole.batches == [{"a": 0.5}]


def test_contradictions_are_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"overwriting existing metric keys is not supported, conflicting key: a$"):
        merge(Measured({"a": 1}), Measured({"a": 2}))
    with pytest.raises(InvalidRequest, match="overwriting batch metrics is not supported"):
        merge(Measured({}, [{"a": 1}]), Measured({}, [{"a": 2}]))


@pytest.mark.parametrize("kind", [Kind.TRAINING, Kind.GENERIC])
def test_stored_form_of_steps(kind: Kind) -> None:
    measured = Measured({"a": 1}, [{"a": 2}])
    assert to_document(kind, measured) == {"avg_metrics": {"a": 1}, "batch_metrics": [{"a": 2}]}
    assert from_document(to_document(kind, measured)) == measured


def test_stored_form_of_validations_and_profiling() -> None:
    assert to_document(Kind.VALIDATION, Measured({"a": 1}, [{"a": 2}])) == {"validation_metrics": {"a": 1}}
    assert to_document(Kind.PROFILING, Measured({"node": {"cpu_util": 1}})) == {"node": {"cpu_util": 1}}
    assert from_document({"validation_metrics": {"a": 1}}) == Measured({"a": 1})
