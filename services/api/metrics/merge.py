"""Merges a report into the row of its trial, group and step when a step is reported again.

Training code may report a step in parts, and clients repeat requests whose answer was lost; both must succeed.
Source: docs/reference/experiments.md 9.1, docs/reference/harness-protocol.md 11 (metric semantics).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from libs.errors import InvalidRequest
from services.api.metrics.groups import AVG_METRICS, BATCH_METRICS, VALIDATION_METRICS, Kind


class Measured(Struct, frozen=True):
    """The numbers of a report, whichever way they are stored."""

    avg: Mapping[str, Any]
    batches: list[Any] | None = None


class Merged(Struct, frozen=True):
    """What the row becomes, and which metrics it did not have before; none: the report was a repetition."""

    whole: Measured
    added: Mapping[str, Any]
    changed: bool


def merge(old: Measured, new: Measured) -> Merged:
    """Add a report to the row of its step.

    Raises InvalidRequest when it contradicts the row: another value for a metric, or other batch metrics.
    """
    for name, value in new.avg.items():
        if name in old.avg and old.avg[name] != value:
            raise InvalidRequest(f"overwriting existing metric keys is not supported, conflicting key: {name}")
    if old.batches and new.batches and old.batches != new.batches:
        raise InvalidRequest("overwriting batch metrics is not supported")
    added = {name: value for name, value in new.avg.items() if name not in old.avg}
    whole = Measured({**old.avg, **added}, old.batches or new.batches)
    return Merged(whole, added, bool(added) or bool(new.batches and not old.batches))


def to_document(kind: Kind, measured: Measured) -> Any:
    """The JSON that is stored, and returned to whoever reads raw metrics."""
    if kind is Kind.PROFILING:
        return measured.avg
    if kind is Kind.VALIDATION:
        return {VALIDATION_METRICS: measured.avg}
    return {AVG_METRICS: measured.avg, BATCH_METRICS: measured.batches or None}


def from_document(document: Mapping[str, Any]) -> Measured:
    """The inverse of ``to_document`` for rows that have a step."""
    if VALIDATION_METRICS in document:
        return Measured(document[VALIDATION_METRICS])
    return Measured(document.get(AVG_METRICS) or {}, document.get(BATCH_METRICS))
