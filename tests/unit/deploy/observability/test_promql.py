from __future__ import annotations

import pytest

from tests.unit.deploy.observability.promql import labels_in, problems

KNOWN = {"a": frozenset({"pool"}), "b_bucket": frozenset({"le", "pool"})}


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ('sum by (pool) (rate(a{pool="x"}[5m])) > 0', []),
        ("histogram_quantile(0.9, sum by (pool, le) (rate(b_bucket[5m])))", []),
        ("c or a", ["metric c"]),
        ("max_over_time(a[1h:]) + rate(c[5m])", ["metric c"]),
        ('a{route="x"}', ["a{route}"]),
        ("sum by (route) (a)", ["label route"]),
    ],
)
def test_what_does_not_exist_is_found_wherever_it_stands(expression: str, found: list[str]) -> None:
    assert problems(expression, KNOWN) == found


def test_what_is_not_promql_is_refused() -> None:
    with pytest.raises(ValueError, match="unclosed left parenthesis"):
        problems("sum by (", KNOWN)


def test_labels_are_found_in_texts() -> None:
    assert labels_in("{{ $labels.pool }} has {{ $value | humanize }} of {{kind}}") == {"pool", "kind"}
