"""Names of metrics and labels in a PromQL expression, compared with those that the services have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import promql_parser

from deploy.documentation.metrics_page import product_metrics

OF_THE_SCRAPER: Final = frozenset({"job", "instance", "namespace", "pod"})
"""Labels that Prometheus adds to every sample."""
_HISTOGRAM: Final = {"_bucket": ("le",), "_sum": (), "_count": ()}
_BELOW: Final = ("lhs", "rhs", "expr", "param", "args", "vector_selector")


def samples() -> dict[str, frozenset[str]]:
    """Name of every sample of the services -> its labels."""
    found = {}
    for metric in product_metrics():
        ends = _HISTOGRAM if metric.kind == "histogram" else {"": ()}
        for end, more in ends.items():
            found[metric.name + end] = frozenset((*metric.labels, *more)) | OF_THE_SCRAPER
    return found


def problems(expression: str, known: dict[str, frozenset[str]]) -> list[str]:
    """What an expression names that does not exist. Raises ValueError for one that is not PromQL."""
    nodes = list(_nodes(promql_parser.parse(expression)))
    selectors = [node for node in nodes if isinstance(node, promql_parser.VectorSelector)]
    found = [f"metric {selector.name}" for selector in selectors if selector.name not in known]
    labels = frozenset().union(*(known.get(selector.name, frozenset()) for selector in selectors))
    for selector in selectors:
        own = known.get(selector.name, frozenset())
        found += [f"{selector.name}{{{each.name}}}" for each in selector.matchers.matchers if each.name not in own]
    for node in nodes:
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
            found += [f"label {label}" for label in node.modifier.labels if label not in labels]
    return found


def matched(expression: str, label: str) -> set[str]:
    """Values that an expression asks of a label."""
    return {
        matcher.value
        for node in _nodes(promql_parser.parse(expression))
        if isinstance(node, promql_parser.VectorSelector)
        for matcher in node.matchers.matchers
        if matcher.name == label
    }


def labels_left(expression: str) -> frozenset[str]:
    """Labels of the result, where it is a sum by some; else those of every sample in it."""
    nodes = list(_nodes(promql_parser.parse(expression)))
    sums = [node for node in nodes if isinstance(node, promql_parser.AggregateExpr)]
    if sums:
        return frozenset(label for node in sums if node.modifier is not None for label in node.modifier.labels)
    known = samples()
    return frozenset().union(*(known[node.name] for node in nodes if isinstance(node, promql_parser.VectorSelector)))


def labels_in(template: str) -> set[str]:
    """Labels that a text for people names: ``{{ $labels.pool }}`` of an alert, ``{{pool}}`` of a legend."""
    return set(re.findall(r"{{\s*(?:\$labels\.)?(\w+)\s*}}", template))


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for name in _BELOW:
        below = getattr(node, name, None)
        for each in below if isinstance(below, list) else () if below is None else (below,):
            yield from _nodes(each)
