"""Metric groups: which kind of report a group holds, and which reports are refused whatever the state of the trial.

Source: docs/reference/experiments.md 9.1 and 9.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from libs.errors import InvalidRequest

TRAINING: Final = "training"
VALIDATION: Final = "validation"
PROFILING_GROUPS: Final = frozenset({"gpu", "cpu", "memory", "disk", "network"})

MAX_GROUP_LENGTH: Final = 255
"""A group is part of an index entry, whose size PostgreSQL limits."""

AVG_METRICS: Final = "avg_metrics"
BATCH_METRICS: Final = "batch_metrics"
VALIDATION_METRICS: Final = "validation_metrics"


class Kind(StrEnum):
    """What a roll-back treats alike: all custom groups together are GENERIC."""

    TRAINING = "TRAINING"
    VALIDATION = "VALIDATION"
    GENERIC = "GENERIC"
    PROFILING = "PROFILING"


def kind_of(group: str) -> Kind:
    if group == TRAINING:
        return Kind.TRAINING
    if group == VALIDATION:
        return Kind.VALIDATION
    return Kind.PROFILING if group in PROFILING_GROUPS else Kind.GENERIC


def summary_key(group: str) -> str:
    """Under which key the summary of a trial has the group."""
    if group == TRAINING:
        return AVG_METRICS
    return VALIDATION_METRICS if group == VALIDATION else group


def group_of_summary(key: str) -> str:
    """The group behind a key of the summary; the inverse of ``summary_key``."""
    if key == AVG_METRICS:
        return TRAINING
    return VALIDATION if key == VALIDATION_METRICS else key


def check_group(group: str) -> None:
    """Raise InvalidRequest for a name that cannot be one of a group."""
    if not group:
        raise InvalidRequest("metric group cannot be empty")
    if "." in group:
        raise InvalidRequest("metric group cannot contain '.'")
    if group in (AVG_METRICS, VALIDATION_METRICS):
        raise InvalidRequest(f"metric group cannot be '{group}', the summary of a trial uses that name")
    if len(group) > MAX_GROUP_LENGTH:
        raise InvalidRequest(f"metric group cannot be longer than {MAX_GROUP_LENGTH} characters")
    if "\0" in group:
        raise InvalidRequest("metric group cannot contain a NUL character")


def check_epochs(metrics: Mapping[str, Any]) -> None:
    """Raise InvalidRequest unless ``epoch`` and ``epochs`` are numbers, null or absent: charts are drawn by them."""
    for name in ("epoch", "epochs"):
        value = metrics.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InvalidRequest(f"cannot add metric with non numeric '{name}' value got {value}")
